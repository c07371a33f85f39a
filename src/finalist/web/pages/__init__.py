"""The pages: look at studies, start one, work on one."""
