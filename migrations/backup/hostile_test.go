package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sparseNamer gives records of sparse files their names, which tar.Writer would leave out: tests write them as ZNU.
type sparseNamer struct{ io.Writer }

func (n sparseNamer) Write(p []byte) (int, error) {
	return n.Writer.Write(bytes.ReplaceAll(p, []byte("ZNU.sparse."), []byte("GNU.sparse.")))
}

// rewrite changes the entries of an archive, and recomputes the manifest as a hostile writer would.
func rewrite(t *testing.T, source string, change func(tar.Header, []byte) []entry) string {
	t.Helper()
	in, err := os.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w, all := newWriter(sparseNamer{gz}, newReport(io.Discard)), tar.NewReader(packed)
	put := func(h *tar.Header, text []byte) {
		h.Size = int64(len(text))
		if err := w.put(t.Context(), h, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		h, err := all.Next()
		if err == io.EOF {
			break
		}
		text, _ := io.ReadAll(all)
		for _, e := range change(*h, text) {
			switch e.h.Name {
			case manifested:
				e.h.Name = manifestName
			case manifestName: // it counts the entries inserted before it
				var m Manifest
				if err := json.Unmarshal(e.text, &m); err != nil {
					t.Fatal(err)
				}
				m.Parts = w.parts.parts()
				e.text, _ = json.Marshal(m)
			}
			put(&e.h, e.text)
		}
	}
	if err := errors.Join(w.tar.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "changed.tgz")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type entry struct {
	h    tar.Header
	text []byte
}

// manifested is the name under which rewrite puts a manifest as it is.
const manifested = manifestName + ".as-it-is"

// uncounted adds entries, or removes a file, which the manifest does not have.
func uncounted(more ...entry) func(tar.Header, []byte) []entry {
	return func(h tar.Header, text []byte) []entry {
		switch {
		case h.Name == manifestName:
			h.Name = manifested
			return append(append([]entry{}, more...), entry{h, text})
		case len(more) == 0 && h.Name == "groups/main/notes.txt":
			return nil
		}
		return []entry{{h, text}}
	}
}

// inserted adds entries before the manifest.
func inserted(more ...entry) func(tar.Header, []byte) []entry {
	return func(h tar.Header, text []byte) []entry {
		if h.Name == manifestName {
			return append(append([]entry{}, more...), entry{h, text})
		}
		return []entry{{h, text}}
	}
}

func TestRestore_HostileArchive_Refused(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	good := i.backup()
	file := func(name string) entry {
		return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, ModTime: time.Unix(1, 0)}, []byte("x")}
	}
	link := func(kind byte, name, to string) entry {
		return entry{tar.Header{Name: name, Typeflag: kind, Linkname: to, Mode: 0o777, ModTime: time.Unix(1, 0)}, nil}
	}
	sparse := func(name string, records map[string]string) entry {
		e := file(name)
		e.h.PAXRecords = records
		return e
	}
	expanding := sparse("groups/s", map[string]string{"ZNU.sparse.major": "1", "ZNU.sparse.minor": "0", "ZNU.sparse.realsize": fmt.Sprint(int64(1) << 60)})
	expanding.text = append([]byte("0\n"), make([]byte, 510)...) // its map, which is part of the content
	type change = func(tar.Header, []byte) []entry
	const name, kind, twice, notBefore = "invalid name, link or size", "of a type that a backup does not have there", " twice", "which is not a file before it"
	for what, tc := range map[string]struct {
		change
		want string // in the error, so that another check does not stand in for the one that is meant
	}{
		"a path outside":               {inserted(file("groups/../../x")), name},
		"an absolute path":             {inserted(file("/tmp/arizuko-hostile")), name},
		"two slashes":                  {inserted(file("groups//x")), name},
		"a name that is a dot":         {inserted(file("groups/.")), name},
		"another folder":               {inserted(file("bin/x")), kind},
		"another case":                 {inserted(file("Groups/x")), kind},
		"the locks":                    {inserted(link(tar.TypeDir, "run/", "")), kind},
		"the log of the database":      {inserted(file("arizuko.db-wal")), kind},
		"a link for the secret":        {inserted(link(tar.TypeSymlink, "media/x", "/etc/passwd")), kind},
		"a link for a folder":          {inserted(link(tar.TypeSymlink, "media", "/etc")), kind},
		"a file below a link":          {inserted(link(tar.TypeSymlink, "groups/l", "/tmp"), file("groups/l/x")), "no such file or directory"},
		"a folder over a link":         {inserted(link(tar.TypeSymlink, "groups/l", "/tmp"), link(tar.TypeDir, "groups/l/", ""), file("groups/l/x")), twice},
		"a hard link outside":          {inserted(link(tar.TypeLink, "groups/h", "../../etc/passwd")), kind},
		"a hard link by two dots":      {inserted(link(tar.TypeLink, "groups/h", "groups/../secret")), kind},
		"a hard link to the secret":    {inserted(link(tar.TypeLink, "groups/h", "secret")), kind},
		"a hard link to a later file":  {inserted(link(tar.TypeLink, "groups/h", "groups/later"), file("groups/later")), notBefore},
		"a hard link to a link":        {inserted(link(tar.TypeSymlink, "groups/l", "/etc/passwd"), link(tar.TypeLink, "groups/h", "groups/l")), notBefore},
		"a hard link through a link":   {inserted(link(tar.TypeSymlink, "groups/l", "/etc"), link(tar.TypeLink, "groups/h", "groups/l/passwd")), notBefore},
		"a file twice":                 {inserted(file("groups/main/notes.txt")), twice},
		"a link in place of a file":    {inserted(link(tar.TypeSymlink, "groups/main/notes.txt", "x")), twice},
		"a device":                     {inserted(link(tar.TypeChar, "groups/dev", "")), kind},
		"a pipe":                       {inserted(link(tar.TypeFifo, "groups/pipe", "")), kind},
		"a sparse file":                {inserted(sparse("groups/s", map[string]string{"ZNU.sparse.size": "600", "ZNU.sparse.numblocks": "1", "ZNU.sparse.map": "0,1"})), "is a sparse file, which only earlier versions stored: use the dashd that made the backup"},
		"one of another format":        {inserted(expanding), "is a sparse file"},
		"a file in no folder":          {inserted(file("groups/none/x")), "no such file or directory"},
		"a second head":                {inserted(file(headName)), twice},
		"a folder for a file":          {inserted(link(tar.TypeDir, "secret/", "")), kind},
		"no database":                  {without(databaseName), "it has no database"},
		"no head":                      {without(headName), "it begins with"},
		"no manifest":                  {without(manifestName), "it ends too early"},
		"another database":             {replaced(databaseName, "SQLite format 3\x00 but not really"), "file is not a database"},
		"a newer schema":               {head(func(h *Head) { h.Schema++ }), "the backup has schema"},
		"another format":               {head(func(h *Head) { h.Format++ }), "the backup has format"},
		"more than the disk":           {head(func(h *Head) { h.Database = 1 << 60 }), "not enough space"},
		"what the manifest has not":    {uncounted(file("groups/x")), "does not have the checksum"},
		"a file that it does not have": {uncounted(), "does not have the checksum"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			data := filepath.Join(parent, "data")
			if _, err := restoration(data, rewrite(t, good, tc.change)).Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			for _, name := range []string{databaseName, groupsName, restoringName, "../x", "../../x"} {
				if _, err := os.Lstat(filepath.Join(data, name)); err == nil {
					t.Errorf("it made %s", name)
				}
			}
		})
	}
}

// An entry that checkEntry lets pass is restored: inserted entries are counted, so the refusals above are of the
// entries.
func TestRestore_InsertedFile_IsRestored(t *testing.T) {
	t.Parallel()
	e := entry{tar.Header{Name: "groups/main/x", Typeflag: tar.TypeReg, Mode: 0o640, ModTime: time.Unix(1, 0)}, []byte("x")}
	data := newInstance(t).restore(rewrite(t, newInstance(t).backup(), inserted(e)))
	if info, err := os.Stat(filepath.Join(data, "groups/main/x")); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestRestore_OpenModes_NotKeptForWhatOnlyDaemonsOpen(t *testing.T) {
	t.Parallel()
	data := newInstance(t).restore(rewrite(t, newInstance(t).backup(), func(h tar.Header, text []byte) []entry {
		h.Mode = 0o7777
		return []entry{{h, text}}
	}))
	for name, want := range map[string]fs.FileMode{
		"": 0o700, secretName: 0o600, databaseName: 0o600, groupsName: 0o700, mediaName: 0o700, "media/202611": 0o700, "media/202611/1-0-a.png": 0o600,
		"groups/main": 0o755, "groups/main/notes.txt": 0o755,
	} {
		info, err := os.Lstat(filepath.Join(data, name))
		if err != nil || info.Mode()&^fs.ModeDir != want {
			t.Errorf("%s: mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// replaced gives an entry another content.
func replaced(name, content string) func(tar.Header, []byte) []entry {
	return func(h tar.Header, text []byte) []entry {
		if h.Name == name {
			text = []byte(content)
		}
		return []entry{{h, text}}
	}
}

func without(name string) func(tar.Header, []byte) []entry {
	return func(h tar.Header, text []byte) []entry {
		if h.Name == name {
			return nil
		}
		return []entry{{h, text}}
	}
}

func head(change func(*Head)) func(tar.Header, []byte) []entry {
	return func(h tar.Header, text []byte) []entry {
		if h.Name == headName {
			var all Head
			_ = json.Unmarshal(text, &all)
			change(&all)
			text, _ = json.Marshal(all)
		}
		return []entry{{h, text}}
	}
}

func TestRead_TrailingBytes_AreNamed(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(newInstance(t).backup())
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"x", strings.Repeat("x", 100), string(content)} {
		path := filepath.Join(t.TempDir(), "longer.tgz")
		if err := os.WriteFile(path, append(bytes.Clone(content), more...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(t.Context(), path, nil, io.Discard); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "goes on after its end") {
			t.Errorf("%d bytes more: %v", len(more), err)
		}
	}
}

func TestCheckEntry_LongLinksAndDeepFolders_Refused(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]tar.Header{
		"long link":   {Typeflag: tar.TypeSymlink, Name: "groups/main/x", Linkname: strings.Repeat("x", maxTarget+1)},
		"deep folder": {Typeflag: tar.TypeDir, Name: "groups/" + strings.Repeat("d/", maxDepth+3)},
	} {
		if err := checkEntry(&h); !errors.Is(err, ErrInvalid) || len(err.Error()) > 400 {
			t.Errorf("%s: %v", name, err)
		}
	}
	e := &extractor{}
	h := &tar.Header{Typeflag: tar.TypeSymlink, Name: "groups/main/x", Linkname: strings.Repeat("x", maxTarget)}
	for e.kept <= maxKept-10_000 {
		if err := e.keep(&e.links, h); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		_ = e.keep(&e.links, h)
	}
	if err := e.keep(&e.links, h); !errors.Is(err, ErrInvalid) {
		t.Errorf("after %d bytes: %v", e.kept, err)
	}
}
