package store

import "strings"

// The statements that Postgres has in words of its own. A text is indexed as the words that this package finds in it:
// the server's own parser knows other words, depending on its locale.
const (
	queryPostgresTexts = `SELECT id, substr(content, 1, 16384) FROM messages WHERE id > $1 AND id <= $2 AND content <> ''`
	// Of rows that have changed, those that are left.
	queryPostgresChanged = `SELECT id, substr(content, 1, 16384) FROM messages WHERE content <> '' AND id IN (SELECT id FROM search_deleted WHERE id <= $1)`
	insertPostgresWords  = `INSERT INTO message_search (docid, words) SELECT * FROM unnest($1::bigint[], $2::text[]::tsvector[])`
)

// postgresStatements replaces statements that no translation word by word does for.
var postgresStatements = map[string]string{
	QuerySearchHits: `SELECT docid, docid FROM message_search WHERE words @@ ?1::tsquery AND docid < ?2 AND docid >= ?3 ORDER BY docid DESC LIMIT ?4+0`,
	// SQLite reads a list of ids in its order by itself.
	QueryListed:      strings.Replace(QueryListed, " LIMIT ?12", " ORDER BY j.key LIMIT ?12", 1),
	QueryListedFound: strings.Replace(QueryListedFound, " LIMIT ?12", " ORDER BY j.key LIMIT ?12", 1),
}
