package groupdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckFlat_FolderInsideAnother_IsRefusedWithTheWay(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "groups")
	nested := filepath.Join(root, "acme", "eng")
	if err := os.MkdirAll(filepath.Join(nested, "oncall"), 0o700); err != nil {
		t.Fatal(err)
	}
	known := []string{"acme", "acme/eng", "acme/eng/oncall", "acme/gone"}
	err := New(root).CheckFlat(known)
	if err == nil || !strings.HasSuffix(err.Error(), "move them: mv -T "+nested+"/oncall "+root+"/acme+eng+oncall && mv -T "+nested+" "+root+"/acme+eng") {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(os.Rename(nested+"/oncall", root+"/acme+eng+oncall"), os.Rename(nested, root+"/acme+eng"), New(root).CheckFlat(known)); err != nil {
		t.Fatal(err)
	}
	// A folder that an agent of acme makes in its own is not a group's.
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "acme", "gone"), 0o700), New(root).CheckFlat(known)); err != nil {
		t.Error(err)
	}
}
