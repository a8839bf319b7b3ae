ALTER TABLE runs DROP COLUMN owner;
DROP TABLE leases;
DROP FUNCTION require_process(bigint);
DROP TABLE processes;
