package discord

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxThreadName  = 100
	defaultArchive = 4320 // minutes
)

// threadRequest is the body of the routes that start a thread.
type threadRequest struct {
	Name        string    `json:"name"`
	AutoArchive int       `json:"auto_archive_duration"`
	Type        *int      `json:"type"`
	Invitable   *bool     `json:"invitable"`
	Message     *outgoing `json:"message"` // of a post in a forum
}

func (t *threadRequest) read(q *request) error {
	if err := q.decode(t); err != nil {
		return err
	}
	t.Name = strings.TrimSpace(t.Name)
	switch {
	case t.Name == "":
		return required("name")
	case utf8.RuneCountInString(t.Name) > maxThreadName:
		return tooLong("name", maxThreadName)
	case t.AutoArchive != 0 && !archiveDuration(t.AutoArchive):
		return badArchiveDuration()
	}
	return nil
}

// archiveDuration reports whether threads may be archived after so many minutes.
func archiveDuration(minutes int) bool { return slices.Contains([]int{60, 1440, 4320, 10080}, minutes) }

func badArchiveDuration() error {
	return invalid("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of {60, 1440, 4320, 10080}.")
}

// openThread creates a thread, with an event if the bot can see it. A thread of a message, and a
// post of a forum, have the id of the message.
func (s *Server) openThread(parent *channel, kind int, id, name string, by User) *channel {
	if id == "" {
		id = s.newID()
	}
	at := s.now()
	t := s.newChannel(Channel{
		ID: id, Type: kind, Name: name, OwnerID: by.ID,
		Metadata: &ThreadMetadata{AutoArchiveDuration: defaultArchive, ArchiveTimestamp: at, CreateTimestamp: at},
	}, parent.guild, parent)
	t.members = []ThreadMember{{ID: id, UserID: by.ID, JoinTimestamp: at}}
	if parent.info.Type == Forum {
		parent.last = id // of a forum: the last post
	}
	s.threadCreate(t, true)
	return t
}

// threadCreate emits a thread that is new, or new to the bot.
func (s *Server) threadCreate(t *channel, isNew bool) {
	if s.sees(t) {
		shown := t.snapshot(s)
		shown.NewlyCreated = isNew
		s.emit(Guilds, "THREAD_CREATE", shown)
	}
}

// branch starts a thread from a message. The message refers to the thread, and the thread begins
// with a reference to the message.
func (s *Server) branch(ch *channel, m *Message, name string, by User) *channel {
	t := s.openThread(ch, PublicThread, m.ID, name, by)
	m.Flags |= HasThread
	shown := t.snapshot(s)
	m.Thread = &shown
	s.emitMessage("MESSAGE_UPDATE", ch, m)
	starter := s.add(t, &Message{
		Author: m.Author, Type: ThreadStarter,
		Reference: &Reference{MessageID: m.ID, ChannelID: ch.info.ID, GuildID: ch.info.GuildID},
	})
	s.emitMessage("MESSAGE_CREATE", t, starter)
	return t
}

// addThread starts a thread without a message. A public one is announced in its channel.
func (s *Server) addThread(ch *channel, kind int, name string, by User) *channel {
	t := s.openThread(ch, kind, "", name, by)
	if kind == PublicThread {
		m := s.add(ch, &Message{
			Author: by, Type: ThreadCreated, Content: name, Reference: &Reference{ChannelID: t.info.ID,
				GuildID: t.info.GuildID},
		})
		s.emitMessage("MESSAGE_CREATE", ch, m)
	}
	return t
}

func (s *Server) startThreadFromMessage(q *request) (any, error) {
	ch, m, err := s.message(q)
	if err != nil {
		return nil, err
	}
	var t threadRequest
	switch err := t.read(q); {
	case err != nil:
		return nil, err
	case ch.info.Type != Text:
		return nil, refuse(400, 50024, "Cannot execute action on this channel type")
	case s.channels[m.ID] != nil:
		return nil, refuse(400, 160004, "A thread has already been created for this message")
	case !s.may(ch, CreatePublicThreads):
		return nil, missingPermissions()
	}
	return s.branch(ch, m, t.Name, s.me).snapshot(s), nil
}

// startThread starts a thread, or a post of a forum with its first message.
func (s *Server) startThread(q *request) (any, error) {
	ch, err := s.readable(q)
	if err != nil {
		return nil, err
	}
	var t threadRequest
	if err := t.read(q); err != nil {
		return nil, err
	}
	switch kind := PrivateThread; { // the documented default
	case ch.info.Type == Forum:
		return s.startPost(q, ch, &t)
	case ch.info.Type != Text:
		return nil, refuse(400, 50024, "Cannot execute action on this channel type")
	default:
		if t.Type != nil {
			kind = *t.Type
		}
		if kind != PublicThread && kind != PrivateThread {
			return nil, invalid("type", "BASE_TYPE_CHOICES", "Value must be one of {10, 11, 12}.")
		}
		if !s.may(ch, CreatePublicThreads|CreatePrivateThreads) {
			return nil, missingPermissions()
		}
		return s.addThread(ch, kind, t.Name, s.me).snapshot(s), nil
	}
}

func (s *Server) startPost(q *request, forum *channel, t *threadRequest) (any, error) {
	if t.Message == nil {
		return nil, required("message")
	}
	if !s.may(forum, SendMessages) {
		return nil, missingPermissions()
	}
	files, err := q.files()
	if err == nil {
		err = t.Message.check(files)
	}
	if err != nil {
		return nil, err
	}
	if t.Message.Content != nil {
		q.call.Text = *t.Message.Content
	}
	if err := s.mayAttach(forum, t.Message, files); err != nil {
		return nil, err
	}
	m, err := s.compose(q, forum, t.Message, files)
	if err != nil {
		return nil, err
	}
	post := s.openThread(forum, PublicThread, "", t.Name, s.me)
	m.ID = post.info.ID
	s.add(post, m)
	s.emitMessage("MESSAGE_CREATE", post, m)
	shown, first := post.snapshot(s), s.inAnswer(post, m)
	shown.Message = &first
	return shown, nil
}

// archive archives or unarchives a thread.
func (s *Server) archive(t *channel, isArchived, isLocked bool) {
	t.info.Metadata.Archived, t.info.Metadata.Locked, t.info.Metadata.ArchiveTimestamp = isArchived, isLocked, s.now()
	s.threadUpdate(t)
}

func (s *Server) threadUpdate(t *channel) {
	if s.sees(t) {
		s.emit(Guilds, "THREAD_UPDATE", t.snapshot(s))
	}
	s.Notify()
}

// enter adds a user to a thread. For the bot, a private one is new then.
func (s *Server) enter(t *channel, user User) {
	if t.threadMember(user.ID) != nil {
		return
	}
	m := ThreadMember{ID: t.info.ID, UserID: user.ID, JoinTimestamp: s.now()}
	t.members = append(t.members, m)
	if user.ID == s.me.ID {
		s.threadCreate(t, false)
	}
	s.membersUpdate(t, user, map[string]any{"added_members": []ThreadMember{m}})
}

func (s *Server) exit(t *channel, user User) {
	if t.threadMember(user.ID) == nil {
		return
	}
	saw := s.sees(t)
	t.members = slices.DeleteFunc(t.members, func(m ThreadMember) bool { return m.UserID == user.ID })
	if saw {
		s.membersUpdate(t, user, map[string]any{"removed_member_ids": []string{user.ID}})
	}
}

// membersUpdate emits a change of the members: of the bot always, of others with the intent.
func (s *Server) membersUpdate(t *channel, user User, change map[string]any) {
	need := Guilds
	if user.ID != s.me.ID {
		need |= GuildMembers
	}
	change["id"], change["guild_id"], change["member_count"] = t.info.ID, t.info.GuildID, len(t.members)
	s.emit(need, "THREAD_MEMBERS_UPDATE", change)
}

// thread is the thread of a request.
func (s *Server) thread(q *request) (*channel, error) {
	t, err := s.readable(q)
	if err == nil && !t.isThread() {
		return nil, refuse(400, 50024, "Cannot execute action on this channel type")
	}
	return t, err
}

func (s *Server) listThreadMembers(q *request) (any, error) {
	t, err := s.thread(q)
	if err != nil {
		return nil, err
	}
	return append([]ThreadMember{}, t.members...), nil
}

func (s *Server) getThreadMember(q *request) (any, error) {
	t, err := s.thread(q)
	if err != nil {
		return nil, err
	}
	id := q.path("user")
	if id == "@me" {
		id = s.me.ID
	}
	m := t.threadMember(id)
	if m == nil {
		return nil, unknown(10007, "Member")
	}
	return *m, nil
}

// openThreadOf is the thread of a request that changes its members.
func (s *Server) openThreadOf(q *request) (*channel, error) {
	t, err := s.thread(q)
	if err == nil && t.info.Metadata.Archived {
		return nil, archived()
	}
	return t, err
}

func (s *Server) joinThread(q *request) (any, error) {
	t, err := s.openThreadOf(q)
	if err == nil {
		s.enter(t, s.me)
	}
	return nil, err
}

func (s *Server) leaveThread(q *request) (any, error) {
	t, err := s.openThreadOf(q)
	if err == nil {
		s.exit(t, s.me)
	}
	return nil, err
}

// addThreadMember adds a member of the guild to a thread.
func (s *Server) addThreadMember(q *request) (any, error) {
	t, err := s.openThreadOf(q)
	if err != nil {
		return nil, err
	}
	m, err := q.member(t.guild)
	switch {
	case err != nil:
		return nil, err
	case !s.may(t, SendMessagesInThreads):
		return nil, missingPermissions()
	}
	s.enter(t, *m.User)
	return nil, nil
}

// removeThreadMember needs Manage Threads, or a private thread of the bot's own.
func (s *Server) removeThreadMember(q *request) (any, error) {
	t, err := s.openThreadOf(q)
	if err != nil {
		return nil, err
	}
	m, err := q.member(t.guild)
	ownsPrivate := t.info.Type == PrivateThread && t.info.OwnerID == s.me.ID
	switch {
	case err != nil:
		return nil, err
	case !ownsPrivate && !s.may(t, ManageThreads):
		return nil, missingPermissions()
	}
	s.exit(t, *m.User)
	return nil, nil
}
