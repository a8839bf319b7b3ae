package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/migrations"
	"arizuko/migrations/dbcopy"
	"arizuko/pkg/store/storetest"
)

// newServerInstance is an instance whose database is on a server.
func newServerInstance(t *testing.T) *instance {
	t.Helper()
	if storetest.Server() == "" {
		t.Skip("without a server; `make test DB=postgres` has one")
	}
	i := &instance{t: t, data: t.TempDir(), database: storetest.Path(t)}
	i.st = storetest.OpenAt(t, i.database, nil)
	i.write("secret", "0123456789abcdef0123456789abcdef\n")
	i.write("groups/main/notes.txt", "remember\n")
	i.say("hello")
	return i
}

// A backup of a server is restored to a file, as any other, and from there to a server.
func TestBackup_OfAServer_RestoredToAFileAndAServer_HasRowsAndFiles(t *testing.T) {
	t.Parallel()
	i := newServerInstance(t)
	target := i.backup() // while its store is open
	i.say("after the backup")
	if s, err := Verify(t.Context(), target, nil, io.Discard); err != nil || s.Messages != 1 || s.Schema != migrations.Latest() {
		t.Errorf("%+v, %v", s, err)
	}
	data := i.restore(target)
	if got, err := os.ReadFile(filepath.Join(data, "groups/main/notes.txt")); err != nil || string(got) != "remember\n" {
		t.Errorf("%q, %v", got, err)
	}
	file, server := filepath.Join(data, databaseName), storetest.Path(t)
	if _, err := dbcopy.ToServer(t.Context(), file, server, dbcopy.Options{}); err != nil {
		t.Fatal(err)
	}
	restored := &instance{t: t, data: data, database: server, st: storetest.OpenAt(t, server, nil)}
	if m, err := restored.st.Message(t.Context(), 1); err != nil || m == nil || m.Content != "hello" {
		t.Errorf("row 1 is %+v, %v", m, err)
	}
	if m, err := restored.st.Message(t.Context(), 2); err != nil || m != nil {
		t.Errorf("a row from after the backup: %+v, %v", m, err)
	}
	if id := restored.say("it goes on"); id < 1<<32 {
		t.Errorf("the next row has id %d, which a row after the backup may have had", id)
	}
	// The file was moved: a backup of it would be one of old rows.
	moved := &instance{t: t, data: data}
	_, err := moved.creation(target + "2").Run(t.Context())
	if !refused(err) || !strings.Contains(err.Error(), "set ARIZUKO_DB") {
		t.Error(err)
	}
}

func TestBackup_OfAServerThatWasMoved_IsRefused(t *testing.T) {
	t.Parallel()
	i := newServerInstance(t)
	storetest.Exec(t, i.database, fmt.Sprintf("INSERT INTO cursors VALUES ('migrate', 'moved', '%s')", "host:/data/arizuko.db"))
	target := filepath.Join(t.TempDir(), "b.tgz")
	_, err := i.creation(target).Run(t.Context())
	if !refused(err) || !errors.Is(err, dbcopy.ErrRefused) || !strings.Contains(err.Error(), "host:/data/arizuko.db") {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(target)); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

func TestRestore_ToAServer_IsRefusedAndSaysHow(t *testing.T) {
	t.Parallel()
	p := Program{
		Place:   func() (Place, error) { return Place{t.TempDir(), "postgres://arizuko:s3cret@127.0.0.1:1/arizuko"}, nil },
		Process: Process{Log: io.Discard, Now: time.Now},
	}
	err := p.restore(t.Context(), []string{"b.tgz"}, &bytes.Buffer{})
	if !refused(err) || !strings.Contains(err.Error(), "migrate copy --to server") {
		t.Error(err)
	}
	err = p.backup(t.Context(), []string{filepath.Join(t.TempDir(), "b.tgz")}, &bytes.Buffer{})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("without a server: %v", err)
	}
}
