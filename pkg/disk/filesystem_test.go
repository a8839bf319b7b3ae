package disk

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUnsafeKind(t *testing.T) {
	t.Parallel()
	for number, want := range map[int64]string{
		0x01021997: "9p", 0x65735546: "FUSE", 0x6a656a63: "virtiofs", 0x6969: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x517b: "SMB",
		int64(int32(-0x00acb2be)): "CIFS", // as machines of 32 bits have it
		unix.EXT4_SUPER_MAGIC:     "", unix.XFS_SUPER_MAGIC: "", unix.BTRFS_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.OVERLAYFS_SUPER_MAGIC: "", 0x2fc12fc1: "",
	} {
		if got := unsafeKind(number); got != want {
			t.Errorf("%#x: %q, want %q", number, got, want)
		}
	}
}

// A file system that cannot is in the tests of pkg/testkit/need, which mounts one.
func TestCheckCarry_FolderOfTheMachine(t *testing.T) {
	t.Parallel()
	if err := CheckCarry(filepath.Join(t.TempDir(), "not", "made", "yet", "arizuko.db")); err != nil {
		t.Error(err)
	}
}
