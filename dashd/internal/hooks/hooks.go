// Package hooks takes in the deliveries of other services, at POST /hook/<id>: each becomes a message of its group.
package hooks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter"
	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// MaxPayload is the largest delivery, in bytes: that of GitHub, whose limit is the highest.
	MaxPayload = 25 << 20
	// maxReading bounds the deliveries of one hook that are read and stored at once, in bytes.
	maxReading = MaxPayload + 7<<20
	// perSecond and burst are the deliveries of one hook. GitHub does not send again what is refused, so that they are
	// many.
	perSecond, burst = 50, 1000
	// maxLoop is how many turns of one topic deliveries start within loopTime: more are taken for a loop, in which the
	// agent hears of its own deeds.
	maxLoop  = 20
	loopTime = 10 * time.Minute
	// refusalDelay is the shortest time between two refusals of a hook that are stored.
	refusalDelay = time.Second
	retryAfter   = "5" // seconds
)

var (
	errTooLarge = apierr.New(apierr.BadRequest, "the delivery has more than %d MiB", MaxPayload>>20)
	errTooMany  = apierr.New(apierr.Unavailable, "more than %d deliveries a second: send it again later", perSecond)
	errBusy     = apierr.New(apierr.Unavailable, "too many deliveries are being read: send it again")
)

// Config has what a receiver needs.
type Config struct {
	Store *store.Store
	Files *adapter.Uploads
	Log   *slog.Logger
	Now   func() time.Time
	Data  string // the data folder
}

// Receiver takes in deliveries.
type Receiver struct {
	Config
	mu     sync.Mutex
	limits map[string]*limits // by id, of hooks that there are or were
}

// limits are those of one hook: what others send to one does not keep another from its deliveries.
type limits struct {
	*rate.Limiter
	reading  *semaphore.Weighted
	refusals *rate.Limiter // of those that are stored
}

// New returns a receiver.
func New(c Config) *Receiver {
	return &Receiver{Config: c, limits: map[string]*limits{}}
}

// Mount adds the endpoint to a router.
func (rc *Receiver) Mount(r chi.Router) {
	r.Post("/hook/*", func(w http.ResponseWriter, r *http.Request) {
		id, state, err := rc.receive(w, r)
		status := apierr.KindOf(err).Status()
		switch {
		case err == nil:
			httpx.JSON(w, http.StatusAccepted, map[string]any{"id": id, "state": state})
			return
		case errors.Is(err, errTooLarge):
			status = http.StatusRequestEntityTooLarge
		case errors.Is(err, errTooMany):
			status = http.StatusTooManyRequests
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", retryAfter)
		}
		httpx.ErrorStatus(w, status, err)
	})
}

// receive returns the message of a delivery and its state, once it is stored.
func (rc *Receiver) receive(w http.ResponseWriter, r *http.Request) (id int64, state string, err error) {
	h, err := hooks.Find(r.Context(), rc.Store.Reader, httpx.Rest(r))
	switch {
	case err != nil:
		return 0, "", apierr.New(apierr.Unavailable, "the database cannot be read now: send it again")
	case h == nil || h.Off:
		return 0, "", apierr.New(apierr.NotFound, "there is no such hook")
	}
	httpx.Allow(w, r, MaxPayload)
	limits := rc.limitsOf(h.ID)
	arriving := &arriving{Reader: r.Body, room: limits.reading}
	defer func() { limits.reading.Release(arriving.held) }()
	body, err := io.ReadAll(arriving)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return 0, "", errTooLarge
	case errors.Is(err, errBusy):
		return 0, "", errBusy
	case err != nil:
		return 0, "", apierr.New(apierr.BadRequest, "the delivery did not arrive whole: %w", err)
	}
	if err := rc.verify(r, h, limits, body); err != nil {
		return 0, "", err
	}
	if !limits.AllowN(rc.Now(), 1) {
		return 0, "", errTooMany
	}
	d, err := newDelivery(h, r.Header, body)
	if err != nil {
		return 0, "", err
	}
	if id, state, err = rc.store(r.Context(), h, d); err != nil {
		rc.Log.Error("storing a delivery failed", "chat", h.JID, "err", err)
		return 0, "", apierr.New(apierr.Unavailable, "the delivery could not be stored: send it again")
	}
	return id, state, nil
}

// arriving is a body that takes room as it arrives: a slow sender holds no more of it than it has sent.
type arriving struct {
	io.Reader
	room *semaphore.Weighted
	held int64 // bytes
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if !a.room.TryAcquire(int64(n)) {
		return 0, errBusy
	}
	a.held += int64(n)
	return n, err
}

func (rc *Receiver) limitsOf(id string) *limits {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if rc.limits[id] == nil {
		rc.limits[id] = &limits{rate.NewLimiter(perSecond, burst), semaphore.NewWeighted(maxReading),
			rate.NewLimiter(rate.Every(refusalDelay), 1)}
	}
	return rc.limits[id]
}

// verify returns an error unless a delivery is of the hook's sender. A refusal is stored, for operators.
func (rc *Receiver) verify(r *http.Request, h *hooks.Found, limits *limits, body []byte) error {
	now := rc.Now()
	secrets, err := hooks.Secrets(rc.Data, h.ID, now)
	if err != nil {
		rc.Log.Error("reading the secret of a hook failed", "chat", h.JID, "err", err)
		return apierr.New(apierr.Unavailable, "the hook has no secret that can be read: `routd hooks rotate` makes one")
	}
	if err = hooks.Verify(h.Hook, secrets, r.Header, body, now); err == nil {
		return nil
	}
	rc.Log.Warn("delivery refused", "chat", h.JID, "reason", err.Error())
	if limits.refusals.AllowN(now, 1) {
		failed := rc.Store.Write(r.Context(), func(tx *store.Tx) error {
			return rows.PutHookRefusal(tx, h.JID, err.Error(), now.UnixMilli())
		})
		if failed != nil {
			rc.Log.Error("storing a refused delivery failed", "chat", h.JID, "err", failed)
		}
	}
	return apierr.New(apierr.Unauthorized, "%w", err)
}

// delivery is what a sender has delivered.
type delivery struct {
	rendered
	id      string // platform id of its message
	event   string
	payload []byte // the JSON
	leave   string // why it starts no turn, "" if it does
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// newDelivery reads a body whose sender is known.
func newDelivery(h *hooks.Found, header http.Header, body []byte) (*delivery, error) {
	d := &delivery{payload: body}
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind == "application/x-www-form-urlencoded" { // as GitHub sends it if it is set so
		if form, err := url.ParseQuery(string(body)); err == nil && form.Has("payload") {
			d.payload = []byte(form.Get("payload"))
		}
	}
	var payload any
	decoder := json.NewDecoder(bytes.NewReader(d.payload))
	decoder.UseNumber()
	if err := decoder.Decode(&payload); err != nil || decoder.More() {
		if h.Kind != groupconfig.HookHMAC && h.Kind != groupconfig.HookBearer {
			return nil, apierr.New(apierr.BadRequest, "the delivery is no JSON: %w", err)
		}
		payload = string(d.payload)
	}
	d.event = hooks.Event(h.Hook, header, payload)
	d.rendered = render(h, d.event, payload, d.payload)
	d.leave = filtered(h.Hook, d.event, d.rendered, payload)
	if d.id = hooks.DeliveryID(h.Hook, header, payload); d.id == "" && h.Kind != groupconfig.HookBearer {
		d.id = string(body) // signed, so that no one else can send it again
	}
	if d.id != "" && !plainID.MatchString(d.id) {
		sum := sha256.Sum256([]byte(d.id))
		d.id = "sha256-" + hex.EncodeToString(sum[:])
	}
	return d, nil
}

// States of a delivery.
const (
	stored   = "stored"
	observed = "observed" // stored, but it starts no turn
	repeated = "repeated" // stored before
)

// store stores a delivery as a message, with its payload as a file. One that is stored already changes nothing.
func (rc *Receiver) store(ctx context.Context, h *hooks.Found, d *delivery) (id int64, state string, err error) {
	files, err := rc.Files.Begin(h.JID)
	if err != nil {
		return 0, "", err
	}
	defer func() {
		if ended := files.End(context.WithoutCancel(ctx), id); ended != nil {
			rc.Log.Error("removing the payload of a delivery failed; gated removes it after a day", "chat", h.JID,
				"err", ended)
		}
	}()
	attached, err := attach(ctx, files, d)
	if err != nil {
		return 0, "", err
	}
	now := rc.Now().UnixMilli()
	m := &msg.Message{ChatJID: h.JID, PlatformID: d.id, Direction: msg.In, Source: "dashd", Sender: h.JID,
		SenderName: h.Name, Content: d.text, Attachments: attached, ThreadID: d.topic, Timestamp: now, ReceivedAt: now}
	if d.topic != "" {
		m.Topic = msg.TopicSigil + d.topic
	}
	err = rc.Store.WriteIn(ctx, store.Scope{h.JID, h.Folder}, func(tx *store.Tx) error {
		state, err = put(ctx, tx, h, d, m)
		return err
	})
	return m.ID, state, err
}

// attach stores the payload. Without room for it the message says so.
func attach(ctx context.Context, files *adapter.UploadedFiles, d *delivery) ([]msg.Attachment, error) {
	file := msg.Attachment{Name: "payload.json", MIME: "application/json", Size: int64(len(d.payload))}
	err := files.Add(ctx, file.Name, file.MIME, file.Size, bytes.NewReader(d.payload))
	var full *adapter.FileError
	if errors.As(err, &full) {
		file.Error = full.Error()
		return []msg.Attachment{file}, nil
	}
	if err != nil {
		return nil, err
	}
	return files.Attachments()
}

// put inserts the message of a delivery, and decides one that starts no turn.
func put(ctx context.Context, tx *store.Tx, h *hooks.Found, d *delivery, m *msg.Message) (state string, err error) {
	title := fmt.Sprintf("hook %s of %s", h.Name, h.Folder)
	if err := tx.PutChat(h.JID, msg.ChatInternal, title, m.ReceivedAt); err != nil {
		return "", err
	}
	reason, why := msg.ReasonHookFilter, d.leave
	if why == "" {
		turns, err := rows.HookTurns(ctx, tx.Reader, h.JID, m.ThreadID, m.ReceivedAt-loopTime.Milliseconds())
		if err != nil {
			return "", err
		}
		if turns >= maxLoop {
			reason, why = msg.ReasonHookLoop, fmt.Sprintf("%d turns of this topic within %s", turns, loopTime)
		}
	}
	_, fresh, err := tx.PutMessage(m)
	switch {
	case err != nil:
		return "", err
	case !fresh:
		return repeated, nil
	case why == "":
		return stored, nil
	}
	return observed, tx.Decide(m.ID, store.Decision{Disposition: msg.Observed, Reason: reason, RoutedTo: h.Folder,
		Topic: m.Topic, ThreadID: m.ThreadID, Error: why, ReceivedAt: m.ReceivedAt}, m.ReceivedAt)
}
