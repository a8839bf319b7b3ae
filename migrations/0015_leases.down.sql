ALTER TABLE runs DROP COLUMN owner;
DROP TABLE leases;
DROP TABLE processes;
