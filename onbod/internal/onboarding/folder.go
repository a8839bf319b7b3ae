package onboarding

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gosimple/slug"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxSlug bounds the part of a default folder that comes from a title, in bytes.
const maxSlug = 40

// DefaultFolders returns the folder of each request that an approval without one connects it to now, by
// code. It is new and named after the platform and the chat's present title. No group has it, nor
// had it: its files would be there still.
func (o *Onboarding) DefaultFolders(ctx context.Context, requests ...*store.Request) (map[string]string, error) {
	taken := map[string]bool{}
	ever, err := o.st.FoldersEver(ctx)
	if err != nil {
		return nil, err
	}
	for _, folder := range ever {
		taken[folder] = true
	}
	pending, err := o.st.PendingRequests(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pending {
		taken[p.Folder] = true
	}
	folders := make(map[string]string, len(requests))
	for _, r := range requests {
		folders[r.Code] = o.freeFolder(baseFolder(r), taken)
	}
	return folders, nil
}

// freeFolder adds a number to the base if it is taken.
func (o *Onboarding) freeFolder(base string, taken map[string]bool) string {
	folder := base
	for n := 2; taken[folder] || o.onDisk(folder); n++ {
		folder = fmt.Sprintf("%s-%d", base, n)
	}
	return folder
}

func (o *Onboarding) onDisk(folder string) bool {
	_, err := os.Lstat(filepath.Join(o.cfg.Groups, msg.DirName(folder)))
	return err == nil
}

// baseFolder is what a request's default folder begins with, a valid folder without parents.
func baseFolder(r *store.Request) string {
	platform, room := msg.SplitJID(r.ChatJID)
	name := r.Title
	if name == "" && r.Kind == msg.ChatDM {
		name = r.SenderName
	}
	return cmp.Or(segment(platform), "chat") + "-" + cmp.Or(segment(name), segment(room), "chat")
}

// segment is a text of a user as a part of a folder: a to z, digits, "-" and "_", other scripts by the
// letters that they sound like; "" if nothing is left.
func segment(text string) string {
	s := slug.Make(clean(text, maxName))
	return strings.Trim(s[:min(len(s), maxSlug)], "-_")
}
