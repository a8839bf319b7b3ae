package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/dataowner"
)

// attachmentRows is how many rows are read at once to find the files they name.
const attachmentRows = 5000

// purgeLogs deletes the logs of runs that are not stored any more.
func (j *Job) purgeLogs(ctx context.Context, cutoff time.Time) (deleted int, err error) {
	old, err := j.oldFiles("logs", cutoff)
	if err != nil {
		return 0, err
	}
	for name := range old {
		var id int64
		if n, err := fmt.Sscanf(path.Base(name), "run-%d.log", &id); n != 1 || err != nil {
			continue
		}
		stored, err := rows.RunExists(ctx, j.st.Reader, id)
		if err != nil {
			return deleted, err
		}
		if stored {
			continue
		}
		if err := j.remove(name); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}

// mediaFolder holds the files of messages, inside the data folder.
const mediaFolder = "media"

// purgeMedia deletes the files of before cutoff that no row names.
func (j *Job) purgeMedia(ctx context.Context, cutoff time.Time) (deleted int, err error) {
	old, err := j.oldFiles(mediaFolder, cutoff)
	if err != nil || len(old) == 0 {
		return 0, err
	}
	for after := int64(0); ; {
		paths, next, err := rows.AttachmentPaths(ctx, j.st.Reader, after, attachmentRows)
		if err != nil {
			return 0, err
		}
		for _, name := range paths {
			delete(old, path.Clean(name))
		}
		if next == 0 {
			break
		}
		after = next
	}
	for name := range old {
		if err := j.remove(name); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, ctx.Err()
}

// dataFile is a file of the data folder.
type dataFile struct {
	name    string // its slash-separated path in the data folder
	size    int64
	written time.Time
}

// files lists the files below a folder of the data folder. A folder, or a file, that is gone meanwhile has none.
func (j *Job) files(folder string) (all []dataFile, err error) {
	err = filepath.WalkDir(filepath.Join(j.cfg.Data, folder), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		relative, err := filepath.Rel(j.cfg.Data, name)
		all = append(all, dataFile{filepath.ToSlash(relative), info.Size(), info.ModTime()})
		return err
	})
	return all, err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// oldFiles are the names of the files below a folder that were last written before cutoff.
func (j *Job) oldFiles(folder string, cutoff time.Time) (map[string]bool, error) {
	all, err := j.files(folder)
	old := map[string]bool{}
	for _, f := range all {
		if f.written.Before(cutoff) {
			old[f.name] = true
		}
	}
	return old, err
}

func (j *Job) remove(name string) error {
	folder, err := dataowner.Open(j.cfg.Data, filepath.Dir(filepath.FromSlash(name)))
	if err == nil {
		err = errors.Join(folder.Remove(path.Base(name)), folder.Close())
	}
	return ignoreGone(err)
}
