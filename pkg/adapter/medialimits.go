package adapter

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"arizuko/pkg/disk"
	"arizuko/pkg/msg"
)

// mediaLimits bounds the size of downloads on the disk: of all chats by MEDIA_QUOTA, of each in a day by
// MEDIA_DAILY.
type mediaLimits struct {
	shell *Shell
	all   *disk.Usage

	mu    sync.Mutex
	chats map[string]int64 // bytes that no row has yet
}

func newMediaLimits(s *Shell) *mediaLimits {
	return &mediaLimits{
		shell: s, chats: map[string]int64{},
		all: &disk.Usage{Folder: filepath.Join(s.Data, mediaFolder), Quota: s.MediaQuota, Now: s.Now},
	}
}

// reserve takes room for a file of a chat, of a size in bytes. The caller gives it back with release. The error is a
// *Failure: permanent for the day's limit that is used up, transient for the quota, below which gated removes files.
func (l *mediaLimits) reserve(ctx context.Context, chatJID string, size int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored, err := l.shell.Store.ChatFileBytes(ctx, chatJID, l.shell.Now().Add(-24*time.Hour).UnixMilli())
	if err != nil {
		return err
	}
	if used := stored + l.chats[chatJID]; used+size > l.shell.MediaDaily {
		class := msg.Permanent
		if stored+size <= l.shell.MediaDaily { // those that are downloaded now may take less than their room
			class = msg.Transient
		}
		return &Failure{Class: class,
			Err: fmt.Errorf("this chat has %d MiB of files in a day, and %d MiB is the limit (MEDIA_DAILY)",
				used>>20, l.shell.MediaDaily>>20)}
	}
	ok, err := l.all.Reserve(size)
	if err != nil {
		return err
	}
	if !ok {
		return &Failure{Class: msg.Transient,
			Err: fmt.Errorf("there is no room for it: all files have %d MiB (MEDIA_QUOTA)", l.shell.MediaQuota>>20)}
	}
	l.chats[chatJID] += size
	return nil
}

// release gives back the room that was reserved for a chat, in bytes, less what files took that were written.
func (l *mediaLimits) release(chatJID string, size, written int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Release(size, written)
	if l.chats[chatJID] -= size; l.chats[chatJID] <= 0 {
		delete(l.chats, chatJID)
	}
}
