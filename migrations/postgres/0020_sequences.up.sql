-- Until the end, nothing takes a number.
SELECT pg_advisory_xact_lock(hashtext('arizuko.write'));

-- The numbers of decisions and of changes of deliveries are sequences: with a row for each, all transactions that take a
-- number would wait for each other. The last one given is last_value.
CREATE SEQUENCE decision_numbers MINVALUE 0;
SELECT setval('decision_numbers', coalesce((SELECT value FROM router_state WHERE key = 'decision_seq'), 0));
DELETE FROM router_state WHERE key = 'decision_seq';

CREATE SEQUENCE delivery_numbers MINVALUE 0;
SELECT setval('delivery_numbers', coalesce((SELECT value FROM counters WHERE name = 'deliveries'), 0));
DELETE FROM counters WHERE name = 'deliveries';
CREATE OR REPLACE FUNCTION number_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.seq := nextval('delivery_numbers');
  RETURN NEW;
END $$;

-- Daemons of before must end: they follow ids, and number decisions by the row. As long as they run, they get numbers of
-- the sequence, too.
UPDATE schema_floor SET floor = 20;
CREATE FUNCTION number_decision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.value := nextval('decision_numbers');
  RETURN NEW;
END $$;
CREATE TRIGGER decision_numbered BEFORE INSERT OR UPDATE ON router_state FOR EACH ROW
  WHEN (NEW.key = 'decision_seq') EXECUTE FUNCTION number_decision();
