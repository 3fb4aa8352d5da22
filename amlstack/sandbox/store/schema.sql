-- The tables of a sandbox. A change that an older state does not survive raises VERSION in database.py.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS resources (
  key TEXT PRIMARY KEY, id TEXT NOT NULL, parent TEXT NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL,
  body TEXT NOT NULL, state TEXT NOT NULL, etag TEXT NOT NULL, created REAL NOT NULL, changed REAL NOT NULL);
CREATE INDEX IF NOT EXISTS resources_by_parent ON resources (parent);
CREATE INDEX IF NOT EXISTS resources_by_type ON resources (lower(type));
CREATE TABLE IF NOT EXISTS operations (
  id TEXT PRIMARY KEY, resource TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, ticks INTEGER NOT NULL,
  started REAL NOT NULL, error TEXT);
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT PRIMARY KEY, workspace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, status TEXT NOT NULL,
  created REAL NOT NULL, started REAL, ended REAL, nodes TEXT NOT NULL DEFAULT '[]', exits TEXT, error TEXT,
  cancel_requested INTEGER NOT NULL DEFAULT 0, runner_pid INTEGER, runner_started INTEGER,
  UNIQUE (workspace, name));
CREATE INDEX IF NOT EXISTS operations_by_status ON operations (status, resource);
CREATE INDEX IF NOT EXISTS jobs_by_name ON jobs (name);
CREATE INDEX IF NOT EXISTS jobs_by_status ON jobs (status);
CREATE TABLE IF NOT EXISTS family (
  job TEXT PRIMARY KEY, parent TEXT NOT NULL, place TEXT NOT NULL, UNIQUE (parent, place));
CREATE TABLE IF NOT EXISTS scales (job TEXT PRIMARY KEY, scale TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sites (job TEXT PRIMARY KEY, profile TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS metrics (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, name TEXT NOT NULL, value REAL, step INTEGER NOT NULL,
  at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS metrics_by_job ON metrics (job, name);
CREATE TABLE IF NOT EXISTS nodes (
  cluster TEXT NOT NULL, number INTEGER NOT NULL, state TEXT NOT NULL, job TEXT, since REAL NOT NULL,
  PRIMARY KEY (cluster, number));
CREATE TABLE IF NOT EXISTS history (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, subject TEXT NOT NULL, state TEXT NOT NULL,
  at REAL NOT NULL, detail TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS history_by_subject ON history (kind, subject);
CREATE TABLE IF NOT EXISTS blobs (
  account TEXT NOT NULL, container TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, size INTEGER NOT NULL,
  md5 TEXT, type TEXT NOT NULL, metadata TEXT NOT NULL, etag TEXT NOT NULL, changed REAL NOT NULL,
  created REAL NOT NULL, PRIMARY KEY (account, container, name));
CREATE TABLE IF NOT EXISTS blob_extras (
  account TEXT NOT NULL, container TEXT NOT NULL, name TEXT NOT NULL, extra TEXT NOT NULL,
  PRIMARY KEY (account, container, name));
CREATE TABLE IF NOT EXISTS containers (
  account TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL, changed REAL NOT NULL, PRIMARY KEY (account, name));
