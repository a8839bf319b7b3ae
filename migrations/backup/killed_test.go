package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"arizuko/migrations/backup/rows"
)

// TestRestore_KilledAnywhere_RepeatWorks stops the replacement after each of its steps.
func TestRestore_KilledAnywhere_RepeatWorks(t *testing.T) {
	t.Parallel()
	source := newInstance(t).backup()
	for step := range 9 {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			t.Parallel()
			i := newInstance(t)
			i.write("groups/main/notes.txt", "newer\n")
			i.ok(i.st.Close())
			i.leaveHalf(source, step)
			_, ready := os.Stat(i.path("restoring/ready.json"))
			r := restoration(i.data, source)
			r.Force = true
			done, err := r.Run(t.Context())
			i.ok(err)
			if done.Resumed != (ready == nil) {
				t.Errorf("resumed %v", done.Resumed)
			}
			now, err1 := os.ReadFile(i.path("groups/main/notes.txt"))
			old, err2 := os.ReadFile(filepath.Join(done.Aside, "groups/main/notes.txt"))
			if err := errors.Join(err1, err2); err != nil || string(now) != "remember\n" || string(old) != "newer\n" {
				t.Errorf("%q, %q, %v", now, old, err)
			}
			if _, err := rows.InspectCopy(t.Context(), i.path(databaseName), true); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(i.path(restoringName)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left", restoringName)
			}
		})
	}
}

// leaveHalf does the first steps of a restore, as if it was killed then.
func (i *instance) leaveHalf(source string, steps int) {
	i.t.Helper()
	root, err := os.OpenRoot(i.data)
	i.ok(err)
	defer root.Close()
	r := restoration(i.data, source)
	r.Force = true
	if steps == 0 {
		i.write("restoring/new/groups/main/half", "of a file")
		i.ok(os.Chmod(i.path("restoring/new/groups/main"), 0o500))
		return
	}
	from, err := os.Open(source)
	i.ok(err)
	defer from.Close()
	p, err := r.extract(i.t.Context(), root, from)
	i.ok(err)
	half := []func() error{
		func() error { return root.Mkdir(p.Aside, 0o700) },
		func() error { return root.Rename(databaseName, filepath.Join(p.Aside, databaseName)) },
		func() error { return p.moveAside(root) },
		func() error { return root.Rename("restoring/new/secret", "secret") },
		func() error { return root.Rename("restoring/new/groups", "groups") },
		func() error {
			return errors.Join(root.Rename("restoring/new/media", "media"), root.Rename("restoring/new/arizuko.db", "arizuko.db"))
		},
		func() error { return root.RemoveAll("restoring/new") },
	}
	for _, step := range half[:steps-1] {
		i.ok(step())
	}
}
