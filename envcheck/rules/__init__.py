"""The rules: a file a family, a function a rule or a row of error lines alone. They judge and never gather."""
