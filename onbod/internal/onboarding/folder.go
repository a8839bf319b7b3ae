package onboarding

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"arizuko/onbod/internal/rows"

	"github.com/gosimple/slug"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// maxSlug bounds the part of a default folder that comes from a title, in bytes.
const maxSlug = 40

// DefaultFolders returns the folder of each request that an approval without one connects it to now, by
// code. It is new and named after the platform and the chat's present title. No group has it, nor
// had it: its files would be there still. Of two chats of one title both have the same one, which
// the first to be approved gets.
func (o *Onboarding) DefaultFolders(ctx context.Context, requests ...*factrows.Request) (map[string]string, error) {
	if len(requests) == 0 {
		return map[string]string{}, nil
	}
	pending, err := rows.PendingRequests(ctx, o.st.Reader)
	if err != nil {
		return nil, err
	}
	approving := map[string]bool{}
	for _, p := range pending {
		approving[p.Folder] = true
	}
	folders, free := make(map[string]string, len(requests)), map[string]string{}
	for _, r := range requests {
		base := baseFolder(r)
		if free[base] == "" {
			if free[base], err = o.freeFolder(ctx, base, approving); err != nil {
				return nil, err
			}
		}
		folders[r.Code] = free[base]
	}
	return folders, nil
}

// freeFolder adds a number to the base if it is taken.
func (o *Onboarding) freeFolder(ctx context.Context, base string, approving map[string]bool) (string, error) {
	folder := base
	for n := 2; ; n++ {
		used, err := rows.FolderUsed(ctx, o.st.Reader, folder)
		if err != nil || !used && !approving[folder] && !o.onDisk(folder) {
			return folder, err
		}
		folder = fmt.Sprintf("%s-%d", base, n)
	}
}

func (o *Onboarding) onDisk(folder string) bool {
	_, err := os.Lstat(filepath.Join(o.cfg.Groups, msg.DirName(folder)))
	return err == nil
}

// baseFolder is the start of a request's default folder, a valid folder without parents.
func baseFolder(r *factrows.Request) string {
	platform, room := msg.SplitJID(r.ChatJID)
	name := r.Title
	if name == "" && r.Kind == msg.ChatDM {
		name = r.SenderName
	}
	return cmp.Or(segment(platform), "chat") + "-" + cmp.Or(segment(name), segment(room), "chat")
}

// segment is a text of a user as a part of a folder: a to z, digits, "-" and "_", other scripts by the
// letters that they sound like; "" if nothing is left. The library knows the sounds of Cyrillic, Greek, Chinese and
// others, which golang.org/x/text does not.
func segment(text string) string {
	s := slug.Make(clean(text, maxName))
	return strings.Trim(s[:min(len(s), maxSlug)], "-_")
}
