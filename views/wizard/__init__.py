"""Find best settings: model, goal, plan, live curve, result; one page, five steps."""
