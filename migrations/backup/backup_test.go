package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/migrations"
	"arizuko/pkg/daemon"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// instance is a data folder with a database and files.
type instance struct {
	t    *testing.T
	data string
	// database is the URL of a server, "" for the file in data.
	database string
	st       *store.Store
	log      bytes.Buffer
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	i := &instance{t: t, data: t.TempDir()}
	path := filepath.Join(i.data, databaseName)
	i.ok(storetest.Migrate(path))
	i.st = storetest.OpenAt(t, path, nil)
	i.write("secret", "0123456789abcdef0123456789abcdef\n")
	i.write("groups/main/notes.txt", "remember\n")
	i.write("media/202611/1-0-a.png", "png")
	i.say("hello")
	return i
}

func (i *instance) ok(errs ...error) {
	i.t.Helper()
	if err := errors.Join(errs...); err != nil {
		i.t.Fatal(err)
	}
}

func (i *instance) path(name string) string { return filepath.Join(i.data, name) }

func (i *instance) write(name, text string) {
	i.t.Helper()
	i.ok(os.MkdirAll(filepath.Dir(i.path(name)), 0o700))
	i.ok(os.WriteFile(i.path(name), []byte(text), 0o600))
}

func (i *instance) say(text string) (id int64) {
	i.t.Helper()
	m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Content: text, Timestamp: 1, ReceivedAt: 1}
	i.ok(i.st.Write(i.t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(m)
		return err
	}))
	return m.ID
}

func (i *instance) creation(target string) Creation {
	return Creation{Process: Process{Version: "v1", Schema: migrations.Latest(), Log: &i.log, Now: time.Now}, Place: Place{i.data, i.database}, Target: target, Out: io.Discard}
}

// backup makes a backup in a folder of its own and returns its path.
func (i *instance) backup() string {
	i.t.Helper()
	target := filepath.Join(i.t.TempDir(), "b.tgz")
	_, err := i.creation(target).Run(i.t.Context())
	i.ok(err)
	return target
}

// restore restores into a new folder.
func (i *instance) restore(source string) string {
	i.t.Helper()
	data := filepath.Join(i.t.TempDir(), "data")
	_, err := restoration(data, source).Run(i.t.Context())
	i.ok(err)
	return data
}

func restoration(data, source string) Restoration {
	return Restoration{Process: Process{Schema: migrations.Latest(), Log: io.Discard, Now: time.Now}, Data: data, Source: source}
}

func TestBackup_Restored_HasRows(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.write("logs/main/run-1.log", "printed")
	target := i.backup()
	if info, err := os.Stat(target); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(target))
	if err != nil || len(entries) != 1 {
		t.Errorf("it leaves %v, %v", entries, err)
	}
	i.say("after the backup")
	if s, err := Verify(t.Context(), target, nil, io.Discard); err != nil || s.Messages != 1 || s.Parts[mediaName].Entries != 3 || s.Schema != migrations.Latest() {
		t.Errorf("%+v, %v", s, err)
	}

	data := i.restore(target)
	for _, name := range []string{"logs", restoringName} {
		if _, err := os.Stat(filepath.Join(data, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	st := storetest.OpenAt(t, filepath.Join(data, databaseName), nil)
	if m, err := st.Message(t.Context(), 1); err != nil || m == nil || m.Content != "hello" {
		t.Errorf("row 1 is %+v, %v", m, err)
	}
	if m, err := st.Message(t.Context(), 2); err != nil || m != nil {
		t.Errorf("a row from after the backup: %+v, %v", m, err)
	}
	var id int64
	i.ok(st.Write(t.Context(), func(tx *store.Tx) (err error) {
		m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Timestamp: 1, ReceivedAt: 1}
		_, _, err = tx.PutMessage(m)
		id = m.ID
		return err
	}))
	if id < 1<<32 {
		t.Errorf("the next row has id %d, which a row after the backup may have had", id)
	}
}

func TestVerify_NewerSchema_NamesBothAndTheRemedy(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	var out, log strings.Builder
	p := Program{Process: Process{Schema: migrations.Latest() - 1, Log: &log}}
	i.ok(p.backup(t.Context(), []string{"--verify", i.backup()}, &out))
	want := fmt.Sprintf("note: the backup has schema %d, this program knows %d: restore it with the version that made it, ", migrations.Latest(), p.Schema)
	if !strings.Contains(out.String(), "is whole") || !strings.Contains(log.String(), want) {
		t.Errorf("it prints %s and %s", out.String(), log.String())
	}
}

func TestBackup_NamedPipe_IsNamed(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.ok(syscall.Mkfifo(i.path("groups/main/pipe"), 0o600))
	i.backup()
	if !strings.Contains(i.log.String(), `"groups/main/pipe": not in the backup: it is neither a file, a folder nor a link`) {
		t.Errorf("log: %s", &i.log)
	}
}

func TestBackup_FileShrinksOrGoes_IsNoted(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	path := i.path("groups/main/notes.txt")
	before, err := os.Lstat(path)
	i.ok(err)
	root, err := os.OpenRoot(i.path("groups/main"))
	i.ok(err)
	defer root.Close()
	report := newReport(&i.log)
	var out bytes.Buffer
	w := newWriter(&out, report)
	i.ok(w.put(t.Context(), &tar.Header{Name: "groups/x", Typeflag: tar.TypeReg, Size: 9}, &padder{r: strings.NewReader("cut")}))
	i.ok(os.Remove(path))
	i.ok(w.entry(t.Context(), root, "notes.txt", "groups/main/notes.txt", before, 0))
	i.ok(os.Symlink("/etc/passwd", path))
	i.ok(w.entry(t.Context(), root, "notes.txt", "groups/main/notes.txt", before, 0))
	if report.notes.Vanished+report.notes.Unreadable != 2 || w.files != 1 {
		t.Errorf("%+v, %d files", report.notes, w.files)
	}
	f, err := os.Open(i.path("secret"))
	i.ok(err)
	defer f.Close()
	info, err := f.Stat()
	i.ok(err)
	i.write("secret", "longer than before, and no longer what was read\n")
	w.compare("secret", f, info, &padder{})
	w.compare("secret", f, info, &padder{err: syscall.EIO})
	if report.notes.Changed != 1 || report.notes.Unreadable != 2 {
		t.Errorf("%+v", report.notes)
	}
}

func TestBackup_TargetExistsOrIsInAGroup_Refused(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	existing := i.backup()
	for _, target := range []string{existing, i.path("groups/main/b.tgz"), i.path("media/b.tgz"), i.path("no/folder/b.tgz"), "/dev/null", i.path(databaseName)} {
		if _, err := i.creation(target).Run(t.Context()); err == nil {
			t.Errorf("%s: no error", target)
		}
	}
	if _, err := Verify(t.Context(), existing, nil, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestBackup_MediaIsALink_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.ok(os.Rename(i.path(mediaName), i.path("elsewhere")))
	i.ok(os.Symlink(i.path("elsewhere"), i.path(mediaName)))
	if _, err := i.creation(filepath.Join(t.TempDir(), "b.tgz")).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "bind-mount") {
		t.Errorf("got %v", err)
	}
}

func TestBackup_Interrupted_LeavesNothing(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := i.creation(filepath.Join(folder, "b.tgz")).Run(ctx)
	if entries, _ := os.ReadDir(folder); !errors.Is(err, context.Canceled) || len(entries) != 0 {
		t.Errorf("%v, %v", err, entries)
	}
	if err := orInterrupted(ctx, err); errors.Is(err, context.Canceled) {
		t.Error("an interrupted backup ends with exit code 0")
	}
}

func TestBackup_TwoAtOnce_SecondRefused(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.ok(os.MkdirAll(i.path("run"), 0o700))
	lock, err := lockfile.TryLock(i.path("run/backup.lock"))
	i.ok(err)
	defer lock.Close()
	if _, err := i.creation(filepath.Join(t.TempDir(), "b.tgz")).Run(t.Context()); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("got %v", err)
	}
}

func TestGuard_FullDisk_Fails(t *testing.T) {
	t.Parallel()
	if err := requireSpace(t.TempDir(), 1<<60); !errors.Is(err, ErrSpace) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("got %v", err)
	}
}

func TestBackup_Stdout_IsWhole(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	var out bytes.Buffer
	c := i.creation(Stdout)
	c.Out = &out
	_, err := c.Run(t.Context())
	i.ok(err)
	if left, err := filepath.Glob(i.path("run/*.db*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	r := restoration(filepath.Join(t.TempDir(), "data"), Stdout)
	r.In = &out
	if _, err := r.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func refused(err error) bool {
	var exit *daemon.ExitError
	return errors.As(err, &exit) && exit.Code == daemon.ExitRefused
}

func TestRestore_NewerSchema_NamesTheVersion(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	r := restoration(filepath.Join(t.TempDir(), "data"), i.backup())
	r.Schema--
	_, err := r.Run(t.Context())
	if !refused(err) || !strings.Contains(err.Error(), "restore it with the version that made it, v1") {
		t.Errorf("got %v", err)
	}
}

func TestVerify_DamagedOrCutOff_Fails(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	good, err := os.ReadFile(i.backup())
	i.ok(err)
	for n := 0; n < len(good); n += max(1, len(good)/40) {
		flipped := bytes.Clone(good)
		for at := n; at < min(n+8, len(good)); at++ { // one bit alone may be one that compression does not use
			flipped[at] ^= 0xff
		}
		for what, text := range map[string][]byte{"cut off": good[:n], "flipped": flipped} {
			if _, err := Verify(t.Context(), Stdout, bytes.NewReader(text), io.Discard); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s at %d of %d: %v", what, n, len(good), err)
			}
		}
	}
}

func TestRestore_FolderHoldsInstance_NeedsForceAndKeepsIt(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	source := i.backup()
	i.ok(i.st.Close())
	i.write("groups/main/notes.txt", "newer\n")
	i.write("own.txt", "an operator's")
	if _, err := restoration(i.data, source).Run(t.Context()); !refused(err) || !strings.Contains(err.Error(), "--force") {
		t.Fatalf("got %v", err)
	}
	r := restoration(i.data, source)
	r.Force = true
	done, err := r.Run(t.Context())
	i.ok(err)
	for name, want := range map[string]string{
		i.path("groups/main/notes.txt"): "remember\n", filepath.Join(done.Aside, "groups/main/notes.txt"): "newer\n", i.path("own.txt"): "an operator's",
	} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(done.Aside, databaseName)); err != nil {
		t.Error(err)
	}
}

func TestRestore_EmptyFolders_AreReplaced(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	source := i.backup()
	for _, force := range []bool{false, true} {
		r := restoration(t.TempDir(), source)
		r.Force = force
		for _, name := range []string{groupsName, mediaName, "logs", "run"} {
			i.ok(os.Mkdir(filepath.Join(r.Data, name), 0o700))
		}
		if force {
			i.ok(os.WriteFile(filepath.Join(r.Data, databaseName), nil, 0o600))
		}
		if _, err := r.Run(t.Context()); err != nil {
			t.Errorf("force %v: %v", force, err)
		}
		if got, err := os.ReadFile(filepath.Join(r.Data, "media/202611/1-0-a.png")); err != nil || string(got) != "png" {
			t.Errorf("force %v: %q, %v", force, got, err)
		}
	}
}

func TestRestore_TwiceInOneSecond_KeepsBoth(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	source := i.backup()
	i.ok(i.st.Close())
	now := time.Now()
	aside := map[string]bool{}
	for range 3 {
		r := restoration(i.data, source)
		r.Force, r.Now = true, func() time.Time { return now }
		done, err := r.Run(t.Context())
		i.ok(err)
		aside[done.Aside] = true
	}
	for name := range aside {
		if _, err := os.Stat(filepath.Join(name, databaseName)); err != nil {
			t.Error(err)
		}
	}
	if len(aside) != 3 {
		t.Errorf("moved to %v", aside)
	}
}
