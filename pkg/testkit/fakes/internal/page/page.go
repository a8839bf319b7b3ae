// Package page serves the web page of a fake chat platform: its chats and threads, their
// messages, and a form to write, reply, edit and react as one of several users. [Platform] is
// what a fake implements for it.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const maxForm = 32 << 20 // bytes, with the attached file

//go:embed page.html page.js page.css
var assets embed.FS

// Options describe the platform.
type Options struct {
	Platform string        // "Telegram"
	Bot      string        // the bot's name, as in "… is typing"
	Mention  string        // the text that mentions the bot
	Emoji    []string      // offered as reactions
	Typing   time.Duration // how long the platform shows that the bot types
}

// Place is a chat, or a thread of it if Thread is set, seen by the user whose id is As.
type Place struct {
	Chat, Thread, As string
}

// Chat is one chat. A request without a user acts as the first of Users.
type Chat struct {
	ID, Name string
	Users    []User
	Threads  []Thread
	Whole    string // the name of the view outside threads; "" if the chat has none
}

// Thread is a thread, topic or post in a chat.
type Thread struct {
	ID, Name string
}

// User is the author of messages.
type User struct {
	ID, Name string
	Bot      bool
}

// Message is a message as the page shows it.
type Message struct {
	ID        string
	From      User
	Time      time.Time
	Thread    string // the name of its thread, in a view of several threads
	Branch    string // the id of the thread that begins with it, or would begin
	Answered  string // the message that it replies to, in short
	Text      string
	Note      string // describes content that is not text
	Photo     string // the id of an image
	File      string // the id of another file
	FileName  string
	Edited    bool
	Reactions []string
	Buttons   []Button
}

// Button is a button below a message.
type Button struct {
	Label, Data string
}

// Buttons are buttons, in the order of their data.
func Buttons(dataByLabel map[string]string) (all []Button) {
	for label, data := range dataByLabel {
		all = append(all, Button{label, data})
	}
	slices.SortFunc(all, func(a, b Button) int { return strings.Compare(a.Data, b.Data) })
	return all
}

// Draft is a message to send.
type Draft struct {
	Text    string
	ReplyTo string
	File    *File
}

// File is a file with its content.
type File struct {
	Name string
	MIME string
	Data []byte
}

// Platform is a fake as its users see it. Errors are shown to the reader of the page.
type Platform interface {
	// Changed returns a channel that is closed when anything happens.
	Changed() <-chan struct{}
	// Chats are all chats.
	Chats() []Chat
	// Messages are oldest first.
	Messages(at Place) []Message
	Actions
	// IsTyping reports whether the platform shows at the moment that the bot types.
	IsTyping(at Place) bool
	File(id string) (File, bool)
}

// Actions are what a user of the page does.
type Actions interface {
	Post(at Place, d Draft) error
	Edit(at Place, id, text string) error
	// React adds a reaction of the user; "" removes all of the user's reactions.
	React(at Place, id, emoji string) error
	// Press presses a button.
	Press(at Place, id, data string) error
}

// page serves the pages of one platform.
type page struct {
	Options
	platform Platform
	view     *template.Template
}

// New serves the page at / and what it needs. Requests for which isAPI is true go to api.
func New(o Options, platform Platform, api http.Handler, isAPI func(path string) bool) http.Handler {
	p := &page{Options: o, platform: platform, view: template.Must(template.ParseFS(assets, "page.html"))}
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", p.show)
	pages.HandleFunc("GET /events", p.events)
	pages.HandleFunc("GET /files/{id}", p.file)
	pages.HandleFunc("POST /send", p.send)
	pages.HandleFunc("POST /react", p.react)
	pages.HandleFunc("POST /press", p.press)
	for _, name := range []string{"page.js", "page.css"} {
		pages.HandleFunc("GET /"+name, func(w http.ResponseWriter,
			r *http.Request) {
			http.ServeFileFS(w, r, assets, name)
		})
	}
	guarded := http.NewCrossOriginProtection().Handler(guard(pages))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAPI(r.URL.Path) {
			api.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// CheckLocal returns an error unless addr, "host:port", is a loopback address: a fake has no login.
func CheckLocal(addr string) error {
	if host, _, err := net.SplitHostPort(addr); err != nil || !loopback(host) {
		return fmt.Errorf("-addr %s: want a loopback address of this machine, such as 127.0.0.1:8181: a fake has no login", addr)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// guard refuses other host names: a web site could let one resolve to this machine (DNS rebinding).
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !loopback(host) {
			http.Error(w, "this page is for this machine only", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy",
			"default-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// where is the place of a request, and the message to reply to or to edit.
type where struct {
	Place
	Reply, Edit string
}

func whereOf(values url.Values) where {
	return where{
		Place{values.Get("chat"), values.Get("topic"), values.Get("as")}, values.Get("reply"), values.Get("edit"),
	}
}

// link is the URL of the page with one thing changed.
func (w where) link(change func(*where)) string {
	change(&w)
	values := url.Values{}
	for name, value := range map[string]string{"chat": w.Chat, "topic": w.Thread, "as": w.As, "reply": w.Reply,
		"edit": w.Edit} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/?" + values.Encode()
}

// resolve finds the chat of a request, and fills in a missing chat, user or thread.
func (p *page) resolve(at *where) (Chat, bool) {
	chats := p.platform.Chats()
	for _, c := range chats {
		if c.ID != at.Chat && at.Chat != "" {
			continue
		}
		at.Chat = c.ID
		if !c.has(at.As) {
			at.As = c.Users[0].ID
		}
		if at.Thread == "" && c.Whole == "" && len(c.Threads) > 0 {
			at.Thread = c.Threads[0].ID
		}
		return c, true
	}
	return Chat{}, false
}

func (c Chat) has(user string) bool {
	for _, u := range c.Users {
		if u.ID == user {
			return true
		}
	}
	return false
}

func (p *page) show(w http.ResponseWriter, r *http.Request) {
	at := whereOf(r.URL.Query())
	chat, found := p.resolve(&at)
	if !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := p.view.Execute(w, p.viewOf(at, chat)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// events sends "changed" at each change, and every Typing, after which typing is over.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	ticker := time.NewTicker(p.Typing)
	defer ticker.Stop()
	for {
		changed := p.platform.Changed()
		if _, err := io.WriteString(w, "data: changed\n\n"); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (p *page) file(w http.ResponseWriter, r *http.Request) {
	f, found := p.platform.File(r.PathValue("id"))
	if !found {
		http.NotFound(w, r)
		return
	}
	// A bot's file is shown as an image or saved, and never runs as a page of this origin.
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if detected := http.DetectContentType(f.Data); strings.HasPrefix(detected, "image/") {
		w.Header().Set("Content-Type", detected)
	} else {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment; filename="+strconv.QuoteToASCII(path.Base(f.Name)))
	}
	_, _ = w.Write(f.Data)
}

// send posts, replies or edits.
func (p *page) send(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseMultipartForm(maxForm); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	file, err := attached(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text := strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n")
	p.act(w, r, func(at where) error {
		switch {
		case at.Edit != "":
			return p.platform.Edit(at.Place, at.Edit, text)
		case text != "" || file != nil:
			return p.platform.Post(at.Place, Draft{Text: text, ReplyTo: at.Reply, File: file})
		}
		return nil
	})
}

// attached returns the file of a form, nil without one.
func attached(r *http.Request) (*File, error) {
	f, header, err := r.FormFile("file")
	if err != nil || header.Size == 0 {
		return nil, nil // the field is optional
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return &File{Name: header.Filename, MIME: http.DetectContentType(data), Data: data}, nil
}

func (p *page) react(w http.ResponseWriter, r *http.Request) {
	p.onMessage(w, r, func(at where, message string) error {
		return p.platform.React(at.Place, message, r.PostForm.Get("emoji"))
	})
}

func (p *page) press(w http.ResponseWriter, r *http.Request) {
	p.onMessage(w, r, func(at where, message string) error {
		return p.platform.Press(at.Place, message, r.PostForm.Get("button"))
	})
}

// onMessage applies a form about a message.
func (p *page) onMessage(w http.ResponseWriter, r *http.Request, do func(at where, message string) error) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.act(w, r, func(at where) error { return do(at, r.PostForm.Get("message")) })
}

// act applies a form and redirects to its place.
func (p *page) act(w http.ResponseWriter, r *http.Request, do func(where) error) {
	at := whereOf(r.PostForm)
	if _, found := p.resolve(&at); !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	if err := do(at); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, at.link(func(w *where) { w.Reply, w.Edit = "", "" }), http.StatusSeeOther)
}
