-- Rules for what agents send out of their sandboxes: the first one that matches, by seq and id, decides. folder: the group, '' for
-- all; method, path (what it begins with): '' for any. secret: the one that the action inject sends.
CREATE TABLE egress_rules (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  seq        INTEGER NOT NULL,
  folder     TEXT NOT NULL DEFAULT '',
  host       TEXT NOT NULL CHECK (host <> ''),
  method     TEXT NOT NULL DEFAULT '',
  path       TEXT NOT NULL DEFAULT '',
  action     TEXT NOT NULL CHECK (action IN ('pass', 'inject', 'ask', 'deny')),
  secret     TEXT NOT NULL DEFAULT '' CHECK ((secret <> '') = (action = 'inject')),
  author     TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX egress_rules_order ON egress_rules (seq, id);
INSERT INTO egress_rules (seq, host, method, action, author, created_at) VALUES
  (10, 'api.anthropic.com', '', 'pass', 'preset', 0),
  (20, 'claude.ai', '', 'pass', 'preset', 0),
  (30, 'platform.claude.com', '', 'pass', 'preset', 0),
  (40, 'console.anthropic.com', '', 'pass', 'preset', 0),
  (50, 'statsig.anthropic.com', '', 'pass', 'preset', 0),
  (60, 'api.openai.com', '', 'pass', 'preset', 0),
  (70, 'auth.openai.com', '', 'pass', 'preset', 0),
  (80, 'chatgpt.com', '', 'pass', 'preset', 0),
  (90, 'generativelanguage.googleapis.com', '', 'pass', 'preset', 0),
  (100, 'cloudcode-pa.googleapis.com', '', 'pass', 'preset', 0),
  (110, 'oauth2.googleapis.com', '', 'pass', 'preset', 0),
  (120, 'aiplatform.googleapis.com', '', 'pass', 'preset', 0),
  (130, 'registry.npmjs.org', '', 'pass', 'preset', 0),
  (140, 'pypi.org', '', 'pass', 'preset', 0),
  (150, 'files.pythonhosted.org', '', 'pass', 'preset', 0),
  (160, 'proxy.golang.org', '', 'pass', 'preset', 0),
  (170, 'sum.golang.org', '', 'pass', 'preset', 0),
  (180, 'index.crates.io', '', 'pass', 'preset', 0),
  (190, 'static.crates.io', '', 'pass', 'preset', 0),
  (200, 'crates.io', '', 'pass', 'preset', 0),
  (210, 'rubygems.org', '', 'pass', 'preset', 0),
  (220, 'repo.maven.apache.org', '', 'pass', 'preset', 0),
  (230, 'deb.debian.org', '', 'pass', 'preset', 0),
  (240, 'security.debian.org', '', 'pass', 'preset', 0),
  (250, 'github.com', 'GET', 'pass', 'preset', 0),
  (260, 'github.com', 'HEAD', 'pass', 'preset', 0),
  (270, 'api.github.com', 'GET', 'pass', 'preset', 0),
  (280, 'api.github.com', 'HEAD', 'pass', 'preset', 0),
  (290, '*.githubusercontent.com', 'GET', 'pass', 'preset', 0),
  (300, '*.githubusercontent.com', 'HEAD', 'pass', 'preset', 0),
  (310, 'codeload.github.com', 'GET', 'pass', 'preset', 0),
  (320, 'codeload.github.com', 'HEAD', 'pass', 'preset', 0);

-- A row for each request, stored before it is sent. ended_at: 0 while it is under way; a request that is still 'sending' when it
-- ends may have arrived. rule: as it read then; rule_id: 0 for none. decided_by: who allowed or refused it, '' for a rule.
CREATE TABLE egress_receipts (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  at         INTEGER NOT NULL,
  run_id     INTEGER NOT NULL,
  turn_id    INTEGER NOT NULL DEFAULT 0,
  folder     TEXT NOT NULL,
  method     TEXT NOT NULL,
  host       TEXT NOT NULL,
  port       INTEGER NOT NULL,
  path       TEXT NOT NULL DEFAULT '',
  body_hash  TEXT NOT NULL DEFAULT '',
  bytes_out  INTEGER NOT NULL DEFAULT 0,
  bytes_in   INTEGER NOT NULL DEFAULT 0,
  status     INTEGER NOT NULL DEFAULT 0,
  state      TEXT NOT NULL CHECK (state IN ('asked', 'sending', 'sent', 'refused', 'failed')),
  rule_id    INTEGER NOT NULL DEFAULT 0,
  rule       TEXT NOT NULL DEFAULT '',
  reason     TEXT NOT NULL DEFAULT '',
  decided_by TEXT NOT NULL DEFAULT '',
  ask_id     INTEGER NOT NULL DEFAULT 0,
  secret     TEXT NOT NULL DEFAULT '',
  ended_at   INTEGER NOT NULL DEFAULT 0,
  CHECK (CASE state WHEN 'asked' THEN ended_at = 0 WHEN 'sending' THEN 1 = 1 ELSE ended_at > 0 END)
) STRICT;
CREATE INDEX egress_receipts_turn ON egress_receipts (turn_id, id);
CREATE INDEX egress_receipts_folder ON egress_receipts (folder, id);
CREATE INDEX egress_receipts_at ON egress_receipts (at, id);
CREATE INDEX egress_receipts_open ON egress_receipts (id) WHERE ended_at = 0;
