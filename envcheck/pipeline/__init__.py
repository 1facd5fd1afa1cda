"""From a request to a report: gather, merge, enrich, judge, conclude."""
