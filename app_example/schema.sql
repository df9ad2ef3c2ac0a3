-- The library: papers, who posted them, and under which tags.

CREATE TABLE papers (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,  -- the number in the address of its page, never given twice
  url      TEXT NOT NULL UNIQUE,
  title    TEXT NOT NULL,
  authors  TEXT NOT NULL DEFAULT '',
  abstract TEXT NOT NULL DEFAULT '',
  doi      TEXT NOT NULL DEFAULT '',
  posted   INTEGER NOT NULL            -- when it was last posted; seconds since 1970, UTC, as all times here
);
CREATE INDEX papers_by_time ON papers (posted DESC, id DESC);

CREATE TABLE users (
  id            INTEGER PRIMARY KEY,
  name          TEXT NOT NULL UNIQUE COLLATE NOCASE,  -- as in the address of the user's page
  full_name     TEXT NOT NULL,
  password_hash TEXT,                                 -- NULL: an author from the data; nobody can log in as one
  joined        INTEGER NOT NULL
);

CREATE TABLE posts (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice, and a new one at each change: feeds go by it
  user_id  INTEGER NOT NULL REFERENCES users,
  paper_id INTEGER NOT NULL REFERENCES papers,
  comment  TEXT NOT NULL DEFAULT '',
  posted   INTEGER NOT NULL,
  changed  INTEGER NOT NULL,
  UNIQUE (user_id, paper_id)
);
CREATE INDEX posts_by_paper ON posts (paper_id);
CREATE INDEX posts_by_user  ON posts (user_id, posted DESC);

CREATE TABLE tags (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE COLLATE NOCASE
);

CREATE TABLE post_tags (
  post_id INTEGER NOT NULL REFERENCES posts,
  tag_id  INTEGER NOT NULL REFERENCES tags,
  PRIMARY KEY (post_id, tag_id)
) WITHOUT ROWID;
CREATE INDEX post_tags_by_tag ON post_tags (tag_id, post_id);

CREATE TABLE sessions (
  id      TEXT PRIMARY KEY,             -- SHA-256, in hex, of what the signed cookie holds
  user_id INTEGER NOT NULL REFERENCES users,
  begun   INTEGER NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id);

CREATE TABLE tokens (
  id      TEXT PRIMARY KEY,             -- the public half of a Web API token
  user_id INTEGER NOT NULL REFERENCES users,
  digest  BLOB NOT NULL,                -- SHA-256 of the secret half
  purpose TEXT NOT NULL,
  made    INTEGER NOT NULL
);
CREATE INDEX tokens_by_user ON tokens (user_id);

-- Full text. The words live in «papers» only; the index follows by these triggers.
CREATE VIRTUAL TABLE papers_text USING fts5 (
  title, authors, abstract, content = 'papers', content_rowid = 'id', tokenize = 'porter unicode61'
);
CREATE TRIGGER papers_text_added AFTER INSERT ON papers BEGIN
  INSERT INTO papers_text (rowid, title, authors, abstract) VALUES (new.id, new.title, new.authors, new.abstract);
END;
CREATE TRIGGER papers_text_gone AFTER DELETE ON papers BEGIN
  INSERT INTO papers_text (papers_text, rowid, title, authors, abstract)
  VALUES ('delete', old.id, old.title, old.authors, old.abstract);
END;
CREATE TRIGGER papers_text_changed AFTER UPDATE OF title, authors, abstract ON papers BEGIN
  INSERT INTO papers_text (papers_text, rowid, title, authors, abstract)
  VALUES ('delete', old.id, old.title, old.authors, old.abstract);
  INSERT INTO papers_text (rowid, title, authors, abstract) VALUES (new.id, new.title, new.authors, new.abstract);
END;
