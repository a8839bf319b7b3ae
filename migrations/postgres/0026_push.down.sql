DROP TABLE push_notices;
DROP TABLE push_subscriptions;
