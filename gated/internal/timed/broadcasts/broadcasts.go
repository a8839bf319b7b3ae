// Package broadcasts sends messages of operators, and of arizuko itself, to many chats: at the top level of
// each, as an answer to nothing.
package broadcasts

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"arizuko/gated/internal/chats"
	"arizuko/gated/internal/endpoint"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// MaxText is the longest text, in characters: about one post on every platform.
	MaxText = 4000
	// MaxChats is how many chats one broadcast reaches.
	MaxChats = 10_000
	// maxKey and maxBy bound the key and the sender of a request, in bytes.
	maxKey = 200
	maxBy  = 200
	// pageRows is how many rows are made in one commit.
	pageRows = 200
	// sweepEvery is how often broadcasts are looked for that a crash has left.
	sweepEvery = time.Minute
)

// Request asks for a broadcast: to the chats of one group, or to chats by their addresses.
type Request struct {
	Folder string   `json:"folder"`
	Chats  []string `json:"chats"`
	Text   string   `json:"text"`
	By     string   `json:"by"`  // the operator
	Key    string   `json:"key"` // of the request, so that it can be repeated; "" for one that is not
}

// Sent is the answer.
type Sent struct {
	Key        string   `json:"key"`
	Chats      []string `json:"chats"`
	MessageIDs []int64  `json:"message_ids"` // in the order of Chats
	// LeftOut are chats of the group that are forums, where all messages are in posts. Of a repeated request it is
	// empty.
	LeftOut []string `json:"left_out,omitempty"`
}

// Broadcasts sends broadcasts.
type Broadcasts struct {
	st    *store.Store
	chats *chats.Chats
	log   *slog.Logger
	now   func() time.Time
}

// New makes a Broadcasts.
func New(st *store.Store, all *chats.Chats, log *slog.Logger, now func() time.Time) *Broadcasts {
	return &Broadcasts{st: st, chats: all, log: log, now: now}
}

// Send stores a broadcast and its rows. The same key again returns the result of the first request, or completes it.
// Errors have a kind of package apierr, but for those of the database.
func (b *Broadcasts) Send(ctx context.Context, r Request) (*Sent, error) {
	if err := check(&r); err != nil {
		return nil, err
	}
	key := "request:" + cmp.Or(r.Key, rand.Text())
	stored, err := rows.BroadcastByKey(ctx, b.st.Reader, key)
	if err != nil {
		return nil, err
	}
	var leftOut []string
	if stored == nil {
		var jids []string
		if jids, leftOut, err = b.targets(ctx, &r); err != nil {
			return nil, err
		}
		if err := b.put(ctx, &rows.Broadcast{Key: key, Text: r.Text, CreatedBy: r.By, Chats: jids}, true); err != nil {
			return nil, err
		}
	}
	if err := b.complete(ctx, key); err != nil {
		return nil, err
	}
	if stored, err = rows.BroadcastByKey(ctx, b.st.Reader, key); err != nil {
		return nil, err
	}
	if stored.Text != r.Text {
		return nil, apierr.New(apierr.Conflict, "key %q was used for a broadcast with another text", r.Key)
	}
	return &Sent{strings.TrimPrefix(key, "request:"), stored.Chats, stored.MessageIDs, leftOut}, nil
}

func check(r *Request) error {
	if !utf8.ValidString(r.Text) || strings.ContainsRune(r.Text, 0) {
		return apierr.New(apierr.BadRequest, "text is not valid UTF-8 without NUL")
	}
	switch {
	case strings.TrimSpace(r.Text) == "":
		return apierr.New(apierr.BadRequest, "text is missing")
	case utf8.RuneCountInString(r.Text) > MaxText:
		return apierr.New(apierr.BadRequest, "text has %d characters, at most %d are sent",
			utf8.RuneCountInString(r.Text), MaxText)
	case (r.Folder == "") == (len(r.Chats) == 0):
		return apierr.New(apierr.BadRequest, "give a folder, whose chats get the text, or chats")
	case len(r.Chats) > MaxChats:
		return apierr.New(apierr.BadRequest, "%d chats, at most %d get one broadcast", len(r.Chats), MaxChats)
	case strings.TrimSpace(r.By) == "" || len(r.By) > maxBy:
		return apierr.New(apierr.BadRequest, "by is missing, or longer than %d bytes: it names the operator", maxBy)
	case len(r.Key) > maxKey:
		return apierr.New(apierr.BadRequest, "key is longer than %d bytes", maxKey)
	}
	return nil
}

// targets are the present addresses of the chats that a request names, each once, and of a group's those that are left
// out.
func (b *Broadcasts) targets(ctx context.Context, r *Request) (jids, leftOut []string, err error) {
	if r.Folder != "" {
		return b.ofGroup(ctx, r.Folder)
	}
	for _, jid := range r.Chats {
		if jid, err = b.known(ctx, jid); err != nil {
			return nil, nil, err
		}
		if !slices.Contains(jids, jid) {
			jids = append(jids, jid)
		}
	}
	if _, without, err := rows.TopLevels(ctx, b.st.Reader, jids); err != nil {
		return nil, nil, err
	} else if len(without) > 0 {
		return nil, nil, apierr.New(apierr.BadRequest,
			"%.200s: a forum takes messages in its posts alone: leave it out", strings.Join(without, ", "))
	}
	return jids, nil, nil
}

func (b *Broadcasts) ofGroup(ctx context.Context, folder string) (jids, leftOut []string, err error) {
	group, err := b.st.Group(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	if group == nil {
		return nil, nil, apierr.New(apierr.NotFound, "no group %.80q", folder)
	}
	all, err := b.chats.Of(ctx, b.st.Reader, folder, MaxChats+1)
	if err == nil && len(all) > MaxChats {
		return nil, nil, apierr.New(apierr.Conflict, "more than %d chats belong to group %s: name chats", MaxChats,
			folder)
	}
	if err == nil {
		jids, leftOut, err = rows.TopLevels(ctx, b.st.Reader, all)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case len(jids) == 0 && len(leftOut) > 0:
		return nil, nil, apierr.New(apierr.NotFound,
			"group %s has only forums, which take messages in their posts alone", folder)
	case len(jids) == 0:
		return nil, nil, apierr.New(apierr.NotFound, "no chat belongs to group %s", folder)
	}
	return jids, leftOut, nil
}

// known is the present address of a chat, which is stored or names a group: a wrong one would never be delivered.
func (b *Broadcasts) known(ctx context.Context, jid string) (string, error) {
	present, err := b.st.Address(ctx, jid)
	if err != nil {
		return "", err
	}
	platform, room := msg.SplitJID(present)
	if platform == "" || room == "" || msg.NoUsers(present) {
		return "", apierr.New(apierr.BadRequest, "%.80q is no chat: write platform:room", jid)
	}
	chat, err := b.st.Chat(ctx, present)
	if err != nil {
		return "", err
	}
	if chat == nil && platform == msg.PlatformWeb {
		group, err := b.st.Group(ctx, room)
		if err != nil {
			return "", err
		}
		if group != nil {
			return present, nil
		}
	}
	if chat == nil {
		return "", apierr.New(apierr.NotFound, "no chat %.80q is known", jid)
	}
	return present, nil
}

// put stores a broadcast without its rows, unless its key is stored.
func (b *Broadcasts) put(ctx context.Context, row *rows.Broadcast, audit bool) error {
	return b.st.Write(ctx, func(tx *store.Tx) error {
		row.CreatedAt = b.now().UnixMilli()
		fresh, err := rows.PutBroadcast(tx, row)
		if err != nil || !fresh || !audit {
			return err
		}
		return tx.PutAudit(row.CreatedBy, "broadcast", fmt.Sprintf("%d chats: %.200s", len(row.Chats), row.Text),
			row.CreatedAt)
	})
}

// complete makes the rows of a broadcast that are missing, page by page.
func (b *Broadcasts) complete(ctx context.Context, key string) error {
	for done := false; !done; {
		err := b.st.Write(ctx, func(tx *store.Tx) (err error) {
			done, err = rows.PutBroadcastPage(tx, key, pageRows, b.now().UnixMilli())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Run completes broadcasts that a crash has left, and announces a new schema, until ctx ends.
func (b *Broadcasts) Run(ctx context.Context) error {
	return store.NewOutage(b.log, "broadcast").Repeat(ctx, sweepEvery, b.sweep)
}

func (b *Broadcasts) sweep(ctx context.Context) error {
	if err := b.announce(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		open, err := rows.OpenBroadcast(ctx, b.st.Reader)
		if err != nil || open == nil {
			return err
		}
		if err := b.complete(ctx, open.Key); err != nil {
			return err
		}
		b.log.Info("broadcast completed", "count", len(open.Chats))
	}
	return nil
}

// announce tells the chats of the groups that want it that the schema is at a new version. The first start of an
// instance announces nothing.
func (b *Broadcasts) announce(ctx context.Context) error {
	version, err := rows.SchemaVersion(ctx, b.st.Reader)
	if err != nil {
		return err
	}
	announced, err := rows.AnnouncedSchema(ctx, b.st.Reader)
	if err != nil || announced >= version {
		return err
	}
	if announced != 0 {
		if err := b.announceTo(ctx, version); err != nil {
			return err
		}
	}
	return b.st.Write(ctx, func(tx *store.Tx) error { return rows.SetAnnouncedSchema(tx, version) })
}

func (b *Broadcasts) announceTo(ctx context.Context, version int64) error {
	groups, err := b.st.Groups(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if config, err := groupconfig.Parse(g.Config); err != nil || !config.Announce {
			continue // the log has the error elsewhere
		}
		all, err := b.chats.Of(ctx, b.st.Reader, g.Folder, MaxChats)
		if err != nil {
			return err
		}
		jids, _, err := rows.TopLevels(ctx, b.st.Reader, all)
		if err != nil {
			return err
		}
		if len(jids) == 0 {
			continue
		}
		err = b.put(ctx, &rows.Broadcast{
			Key: fmt.Sprintf("schema:%d:%s", version, g.Folder), CreatedBy: "gated", Chats: jids,
			Text: fmt.Sprintf("Arizuko was updated: its database is at version %d now.", version),
		}, false)
		if err != nil {
			return err
		}
	}
	return nil
}

// Path is the endpoint of gated that sends a broadcast.
const Path = "/v1/broadcasts"

// Mount adds the endpoint. The router must check the bearer secret.
func (b *Broadcasts) Mount(r chi.Router) {
	r.Post(Path, endpoint.Handler(http.StatusAccepted, func(r *http.Request) (any, error) {
		request, err := httpx.Decode[Request](r)
		if err != nil {
			return nil, err
		}
		return b.Send(r.Context(), request)
	}))
}
