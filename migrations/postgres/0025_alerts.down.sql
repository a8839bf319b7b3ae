DROP TABLE alert_notices;
DROP TABLE alerts;
