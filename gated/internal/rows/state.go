package rows

import (
	"context"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/store"
)

// TableChangedAt is when routes or groups were changed last, in unix ms, as far as the audit tells: it does not have
// changes by SQL. 0 is never.
func TableChangedAt(ctx context.Context, r store.Reader) (at int64, err error) {
	for _, what := range []string{"add route", "change route", "delete route", "reorder routes", "add group",
		"change group", "delete group", factrows.AuditMove} {
		rows, err := factrows.Audit(ctx, r, factrows.AuditQuery{What: what, Limit: 1})
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			at = max(at, row.At)
		}
	}
	return at, nil
}

// FoldersEver returns the folders of all groups that the rows know of: registered
// ones, and those with sessions or turns, which were removed since. Sorted.
func FoldersEver(ctx context.Context, r store.Reader) ([]string, error) {
	const query = `SELECT folder FROM registered_groups UNION SELECT group_folder FROM sessions
		UNION SELECT folder FROM turns ORDER BY 1`
	return store.All(ctx, r, store.One[string], query)
}

// stateAnnounced is a key of router_state.
const stateAnnounced = "announced_schema"

// state is the value of a key of router_state, 0 for none.
func state(ctx context.Context, r store.Reader, key string) (int64, error) {
	return store.Value[int64](ctx, r, `SELECT value FROM router_state WHERE key = ?`, key)
}

const putState = `INSERT INTO router_state (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`

// SetDemoAgent stores that.
func SetDemoAgent(tx *store.Tx, demo bool) error {
	value := 0
	if demo {
		value = 1
	}
	return tx.Exec(putState, store.StateDemoAgent, value)
}

// AnnouncedSchema is the schema version that gated has announced last, 0 for none.
func AnnouncedSchema(ctx context.Context, r store.Reader) (version int64, err error) {
	return state(ctx, r, stateAnnounced)
}

// SetAnnouncedSchema stores that version.
func SetAnnouncedSchema(tx *store.Tx, version int64) error {
	return tx.Exec(putState, stateAnnounced, version)
}

// SchemaVersion is the number of the last migration.
func SchemaVersion(ctx context.Context, r store.Reader) (int64, error) {
	return store.Value[int64](ctx, r, `SELECT version FROM schema_migrations`)
}
