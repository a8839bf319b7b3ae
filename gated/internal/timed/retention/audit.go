package retention

import (
	"context"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/store"
)

// purgeAudit deletes changes by operators: those beyond store.MaxAuditRows, and with Config.Days those that are older
// than that, and than store.MinAuditDays.
func (j *Job) purgeAudit(ctx context.Context, now time.Time) (total int, err error) {
	before := int64(0)
	if j.cfg.Days > 0 {
		before = now.AddDate(0, 0, -max(j.cfg.Days, rows.MinAuditDays)).UnixMilli()
	}
	for {
		deleted := 0
		err := j.st.Write(ctx, func(tx *store.Tx) (err error) {
			deleted, err = rows.PurgeAudit(tx, before, pageRows)
			return err
		})
		total += deleted
		if err != nil || deleted == 0 {
			return total, err
		}
		j.pause(ctx, pagePause)
	}
}
