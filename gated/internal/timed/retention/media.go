package retention

import (
	"cmp"
	"context"
	"slices"
	"time"

	"arizuko/gated/internal/rows"
)

const (
	// trimEvery is how often the media folder is measured: 20,000 files take about 50 ms.
	trimEvery = time.Minute
	// A media folder that has more than trimAbove percent of MEDIA_QUOTA is trimmed to trimTo percent, so
	// that there is always room for new files.
	trimAbove, trimTo = 90, 80
	// minMediaAge is the age from which a file may be removed for room: the row or the copy that it is
	// written for may still be to come.
	minMediaAge = 15 * time.Minute
	// minOrphanAge is the age from which a file that no row names is removed.
	minOrphanAge = 24 * time.Hour
)

// TrimMedia removes the oldest files of messages that no open turn and no unsent message needs, if all
// together have nearly MEDIA_QUOTA bytes.
func (j *Job) TrimMedia(ctx context.Context) (removed int, err error) {
	files, err := j.files(mediaFolder)
	used := int64(0)
	for _, f := range files {
		used += f.size
	}
	limit, to := j.cfg.MediaQuota/100*trimAbove, j.cfg.MediaQuota/100*trimTo
	if err != nil || used <= limit {
		j.mediaFull = false
		return 0, err
	}
	needed, err := rows.NeededFiles(ctx, j.st.Reader)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(files, func(a, b dataFile) int {
		return cmp.Or(a.written.Compare(b.written), cmp.Compare(a.name, b.name))
	})
	before := j.cfg.Now().Add(-minMediaAge)
	for _, f := range files {
		if used <= to || ctx.Err() != nil || !f.written.Before(before) {
			break
		}
		if needed[f.name] {
			continue
		}
		if err := j.remove(f.name); err != nil {
			return removed, err
		}
		used -= f.size
		removed++
	}
	j.purged.WithLabelValues("media").Add(float64(removed))
	if removed > 0 {
		j.log.Info("media folder trimmed to keep within MEDIA_QUOTA", "count", removed, "bytes", used)
	}
	full := used > limit
	if full && !j.mediaFull {
		j.log.Warn("media folder is full, and all its files are new or needed by open turns: raise MEDIA_QUOTA, "+
			"or files are refused", "bytes", used)
	}
	j.mediaFull = full
	return removed, ctx.Err()
}
