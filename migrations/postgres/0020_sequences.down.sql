SELECT pg_advisory_xact_lock(hashtext('arizuko.write'));
DROP TRIGGER decision_numbered ON router_state;
DROP FUNCTION number_decision();
DELETE FROM router_state WHERE key = 'decision_seq';
UPDATE schema_floor SET floor = 6;
INSERT INTO router_state (key, value) SELECT 'decision_seq', last_value FROM decision_numbers WHERE last_value > 0;
INSERT INTO counters (name, value) SELECT 'deliveries', last_value FROM delivery_numbers;
CREATE OR REPLACE FUNCTION number_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE counters SET value = value + 1 WHERE name = 'deliveries' RETURNING value INTO NEW.seq;
  RETURN NEW;
END $$;
DROP SEQUENCE decision_numbers;
DROP SEQUENCE delivery_numbers;
