package facts

import (
	"fmt"
	"time"

	"arizuko/pkg/disk"
)

const (
	// unsavedAge is how long an instance may be in use before it says that no backup was made.
	unsavedAge = 7 * 24 * time.Hour
	// maxBackupAge is for instances with a backup each night.
	maxBackupAge = 3 * 24 * time.Hour
	backupFix    = "run `dashd backup FILE` by hand, which says why it fails; with systemd look at " +
		"`journalctl -u arizuko-backup`"
	// maxMedia is the share of MEDIA_QUOTA, in percent, that files take only if gated cannot remove enough: it
	// removes old ones from 90 on.
	maxMedia = 95
)

// Backups checks when the last backup was made and when one failed last, each zero for never. now is in unix ms.
func (l *List) Backups(done, failed time.Time, now int64) {
	switch {
	case failed.After(done):
		l.Problem("backup-failed", "the last backup failed "+Ago(now, failed.UnixMilli()), backupFix)
	case !done.IsZero() && now-done.UnixMilli() > maxBackupAge.Milliseconds():
		l.Warn("backup-old", "the last backup was made "+Ago(now, done.UnixMilli()), backupFix)
	}
}

// Unsaved checks whether an instance whose first message came at began, in unix ms, is old enough to have a backup. It
// has none, nor has one failed.
func (l *List) Unsaved(began, now int64) {
	if began > 0 && now-began > unsavedAge.Milliseconds() {
		l.Warn("backup-none", "no backup was ever made, and the first message came "+Ago(now, began),
			"run `dashd backup FILE`, each night; if another program backs up the data folder, let it "+
				"`touch run/backup.done` there when it has finished")
	}
}

// MediaFull checks whether the files of messages fill their quota, both in bytes.
func (l *List) MediaFull(used, quota int64) {
	if quota > 0 && used > quota/100*maxMedia {
		l.Problem("media-full", fmt.Sprintf("the files of messages take %s of the %s that MEDIA_QUOTA allows: "+
			"new ones are refused", disk.Bytes(used), disk.Bytes(quota)),
			"raise MEDIA_QUOTA for all daemons; gated removes the oldest files, but none that an open turn needs")
	}
}
