package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	w, all := newWriter(gz, newReport(io.Discard)), tar.NewReader(packed)
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
		if h.Name == manifestName {
			var m Manifest
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			m.Parts = w.parts.parts()
			text, _ = json.Marshal(m)
		}
		for _, e := range change(*h, text) {
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
		return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600}, []byte("x")}
	}
	link := func(kind byte, name, to string) entry {
		return entry{tar.Header{Name: name, Typeflag: kind, Linkname: to, Mode: 0o777}, nil}
	}
	sparse := file("groups/s")
	sparse.h.PAXRecords = map[string]string{sparseRecord: "10,5+6"}
	for name, change := range map[string]func(tar.Header, []byte) []entry{
		"a path outside":              inserted(file("groups/../../x")),
		"an absolute path":            inserted(file("/tmp/arizuko-hostile")),
		"another folder":              inserted(file("bin/x")),
		"the log of the database":     inserted(file("arizuko.db-wal")),
		"a link for the secret":       inserted(link(tar.TypeSymlink, "media/x", "/etc/passwd")),
		"a link for a folder":         inserted(link(tar.TypeSymlink, "media", "/etc")),
		"a file below a link":         inserted(link(tar.TypeSymlink, "groups/l", "/tmp"), file("groups/l/x")),
		"a hard link outside":         inserted(link(tar.TypeLink, "groups/h", "../../etc/passwd")),
		"a hard link to the secret":   inserted(link(tar.TypeLink, "groups/h", "secret")),
		"a hard link to a later file": inserted(link(tar.TypeLink, "groups/h", "groups/later"), file("groups/later")),
		"a file twice":                inserted(file("groups/main/notes.txt")),
		"a link in place of a file":   inserted(link(tar.TypeSymlink, "groups/main/notes.txt", "x")),
		"a device":                    inserted(link(tar.TypeChar, "groups/dev", "")),
		"an invalid map":              inserted(sparse),
		"a file in no folder":         inserted(file("groups/none/x")),
		"a second head":               inserted(file(headName)),
		"no database":                 without(databaseName),
		"no head":                     without(headName),
		"no manifest":                 without(manifestName),
		"another database": func(h tar.Header, text []byte) []entry {
			if h.Name == databaseName {
				text = []byte("SQLite format 3\x00 but not really")
			}
			return []entry{{h, text}}
		},
		"a newer schema":       head(func(h *Head) { h.Schema++ }),
		"another format":       head(func(h *Head) { h.Format++ }),
		"more than the disk":   head(func(h *Head) { h.FileBytes = 1 << 60 }),
		"a folder for a file":  inserted(link(tar.TypeDir, "secret/", "")),
		"a name that is a dot": inserted(file("groups/.")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			data := filepath.Join(parent, "data")
			if _, err := restoration(data, rewrite(t, good, change)).Run(t.Context()); err == nil {
				t.Error("no error")
			}
			for _, name := range []string{databaseName, groupsName, restoringName, "../x", "../../x"} {
				if _, err := os.Lstat(filepath.Join(data, name)); err == nil {
					t.Errorf("it made %s", name)
				}
			}
		})
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
