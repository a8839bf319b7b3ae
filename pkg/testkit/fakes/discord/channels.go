package discord

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// The documented limits of channels.
const (
	maxTopic    = 1024
	maxChannels = 500
	maxSlowmode = 21_600 // seconds
)

// channelRequest is the body of the routes that create and change a channel or a thread. Other fields are ignored.
type channelRequest struct {
	Name        *string   `json:"name"`
	Type        *int      `json:"type"`
	Topic       *Nullable `json:"topic"`
	Position    *int      `json:"position"`
	Slowmode    *int      `json:"rate_limit_per_user"`
	NSFW        *bool     `json:"nsfw"`
	ParentID    *Nullable `json:"parent_id"`
	Archived    *bool     `json:"archived"`
	Locked      *bool     `json:"locked"`
	Invitable   *bool     `json:"invitable"`
	AutoArchive *int      `json:"auto_archive_duration"`
}

func (b *channelRequest) read(q *request) error {
	if err := q.decode(b); err != nil {
		return err
	}
	switch name, topic := b.Name, b.Topic; {
	case name != nil && (*name == "" || utf8.RuneCountInString(*name) > maxThreadName):
		return invalid("name", "BASE_TYPE_BAD_LENGTH", fmt.Sprintf("Must be between 1 and %d in length.",
			maxThreadName))
	case topic != nil && utf8.RuneCountInString(string(*topic)) > maxTopic:
		return tooLong("topic", maxTopic)
	case b.Slowmode != nil && (*b.Slowmode < 0 || *b.Slowmode > maxSlowmode):
		return invalid("rate_limit_per_user", "NUMBER_TYPE_MAX",
			fmt.Sprintf("int value should be less than or equal to %d.", maxSlowmode))
	case b.AutoArchive != nil && !archiveDuration(*b.AutoArchive):
		return badArchiveDuration()
	}
	return nil
}

func (b *channelRequest) apply(to *Channel) {
	set(&to.Name, b.Name)
	set(&to.Topic, b.Topic)
	set(&to.Position, b.Position)
	set(&to.Slowmode, b.Slowmode)
	set(&to.NSFW, b.NSFW)
}

// modifyChannel changes a channel of a guild or a thread.
func (s *Server) modifyChannel(q *request) (any, error) {
	ch, err := s.readable(q)
	if err != nil {
		return nil, err
	}
	var body channelRequest
	if err := body.read(q); err != nil {
		return nil, err
	}
	switch {
	case ch.isThread():
		return s.modifyThread(ch, &body)
	case ch.guild == nil:
		return nil, notInPrivate()
	case !s.may(ch, ManageChannels):
		return nil, missingPermissions()
	}
	if err := s.moved(ch, body.ParentID); err != nil {
		return nil, err
	}
	if err := s.renamed(ch, &body); err != nil {
		return nil, err
	}
	body.apply(&ch.info)
	s.emit(Guilds, "CHANNEL_UPDATE", ch.snapshot(s))
	return ch.snapshot(s), nil
}

// moved moves a channel to a category.
func (s *Server) moved(ch *channel, to *Nullable) error {
	if to == nil {
		return nil
	}
	parent := s.channels[string(*to)]
	if *to != "" && (parent == nil || parent.info.Type != Category || parent.guild != ch.guild) {
		return invalid("parent_id", "CHANNEL_PARENT_INVALID", "Category does not exist")
	}
	ch.info.ParentID = *to
	return nil
}

// A channel gets another name or topic this often. Discord does not document it; its answers say so.
const (
	maxRenames   = 2
	renameWindow = 10 * time.Minute
)

// renamed refuses one name or topic too many.
func (s *Server) renamed(ch *channel, body *channelRequest) error {
	if s.rates == nil || body.Name == nil && body.Topic == nil {
		return nil
	}
	now := s.clock()
	ch.renames = ch.renames.Since(renameWindow, now)
	if len(ch.renames) >= maxRenames {
		return limited(ch.renames.Wait(maxRenames, renameWindow, now), false)
	}
	ch.renames = append(ch.renames, now)
	return nil
}

// modifyThread changes a thread. All who may write in it may take it out of the archive.
func (s *Server) modifyThread(t *channel, b *channelRequest) (any, error) {
	state := t.info.Metadata
	opens := b.Archived != nil && !*b.Archived
	others := b.Name != nil || b.Locked != nil || b.Slowmode != nil || b.AutoArchive != nil || b.Invitable != nil
	may := s.may(t, ManageThreads)
	if owns := t.info.OwnerID == s.me.ID && b.Locked == nil && b.Slowmode == nil; !may && !state.Locked {
		may = owns || opens && !others && s.may(t, SendMessagesInThreads)
	}
	switch {
	case !may:
		return nil, missingPermissions()
	case state.Archived && !opens && (others || b.Archived == nil):
		return nil, archived()
	}
	b.apply(&t.info)
	set(&state.AutoArchiveDuration, b.AutoArchive)
	if b.Invitable != nil && t.info.Type == PrivateThread {
		state.Invitable = b.Invitable
	}
	if b.Archived == nil && b.Locked == nil {
		s.threadUpdate(t)
		return t.snapshot(s), nil
	}
	isArchived, isLocked := state.Archived, state.Locked
	set(&isArchived, b.Archived)
	set(&isLocked, b.Locked)
	s.archive(t, isArchived, isLocked)
	return t.snapshot(s), nil
}

// createChannel creates a channel of a guild.
func (s *Server) createChannel(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	var body channelRequest
	if err := body.read(q); err != nil {
		return nil, err
	}
	kind := Text
	set(&kind, body.Type)
	switch {
	case !s.mayIn(g, ManageChannels):
		return nil, missingPermissions()
	case body.Name == nil:
		return nil, required("name")
	case kind != Text && kind != Category && kind != Forum:
		return nil, invalid("type", "BASE_TYPE_CHOICES", "Value must be one of {0, 4, 15}.") // the fake has no others
	case len(s.channelsOf(g, false)) >= maxChannels:
		return nil, refuse(400, 30013, fmt.Sprintf("Maximum number of guild channels reached (%d)", maxChannels))
	}
	ch := &channel{guild: g}
	if err := s.moved(ch, body.ParentID); err != nil {
		return nil, err
	}
	info := Channel{Type: kind, ParentID: ch.info.ParentID}
	body.apply(&info)
	made := s.newChannel(info, g, nil)
	s.emit(Guilds, "CHANNEL_CREATE", made.snapshot(s))
	return made.snapshot(s), nil
}

// deleteChannel deletes a channel or a thread.
func (s *Server) deleteChannel(q *request) (any, error) {
	ch, err := s.readable(q)
	need := ManageChannels
	if err == nil && ch.isThread() {
		need = ManageThreads
	}
	switch {
	case err != nil:
		return nil, err
	case ch.guild != nil && !s.may(ch, need):
		return nil, missingPermissions()
	case ch.guild != nil:
		s.dropChannel(ch)
	}
	return ch.snapshot(s), nil // a private one is closed in the bot's list alone
}
