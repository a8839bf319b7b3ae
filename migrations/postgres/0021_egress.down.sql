DROP TABLE egress_receipts;
DROP TABLE egress_rules;
DELETE FROM router_state WHERE key = 'egress_version';
