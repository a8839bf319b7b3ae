DROP TABLE hook_refusals;
