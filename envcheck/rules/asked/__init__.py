"""Pages of the findings about what was asked for: plans, assumptions, requirements and a configuration."""
