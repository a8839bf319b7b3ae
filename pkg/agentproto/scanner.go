package agentproto

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lineBuffer bounds the memory for one line, in bytes. Delimiters are far shorter;
// a longer line is handled in pieces.
const lineBuffer = 32 << 10

// Output is one thing that an agent says: exactly one field is set.
type Output struct {
	Frame *Frame
	Event *Event
}

// Scanner finds the frames and events in an agent's stdout. Its memory is bounded by
// [MaxFrame] and [MaxEvent] whatever the agent prints.
type Scanner struct {
	in      *bufio.Reader
	discard io.Writer
	midLine bool // the last piece read did not end its line

	open     bool // between the delimiters
	oversize bool
	body     []byte
	event    []byte // the beginning of an event whose line is longer than a piece
}

// NewScanner reads frames and events from r and writes everything else to discard: one Write
// per line, or several for a line longer than 32 KiB. Errors of discard are
// ignored: a full log disk must not lose an answer.
func NewScanner(r io.Reader, discard io.Writer) *Scanner {
	return &Scanner{in: bufio.NewReaderSize(r, lineBuffer), discard: discard}
}

// Next returns the next frame or event. For an invalid frame it returns a [*Malformed]
// error and can be called again; any other error is the reader's and final,
// io.EOF at its end. An event that is invalid or of an unknown type is discarded.
func (s *Scanner) Next() (Output, error) {
	for {
		starts := !s.midLine
		piece, err := s.in.ReadSlice('\n')
		s.midLine = errors.Is(err, bufio.ErrBufferFull)
		if len(piece) > 0 || len(s.event) > 0 {
			out, done, bad := s.take(piece, starts, !s.midLine)
			if done {
				return out, bad
			}
		}
		if err == nil || s.midLine {
			continue
		}
		if s.open {
			return Output{}, s.abandon("output ended inside the frame")
		}
		return Output{}, err
	}
}

// NextFrame is Next without events.
func (s *Scanner) NextFrame() (Frame, error) {
	for {
		out, err := s.Next()
		switch {
		case err != nil:
			return Frame{}, err
		case out.Frame != nil:
			return *out.Frame, nil
		}
	}
}

// take handles one piece of output, which starts and ends a line or is a part of one: only a whole line can be a
// delimiter. done means that it completed an event or a frame, which is valid if err is nil.
func (s *Scanner) take(piece []byte, starts, ends bool) (out Output, done bool, err error) {
	whole := starts && ends
	switch {
	case whole && isDelimiter(piece, FrameStart):
		if s.open {
			err = s.abandon("a second frame began before it ended")
		}
		s.open = true
		return Output{}, err != nil, err
	case !s.open && (len(s.event) > 0 || starts && bytes.HasPrefix(piece, []byte(EventMark+" "))):
		out, done = s.takeEvent(piece, ends)
		return out, done, nil
	case !s.open:
		_, _ = s.discard.Write(piece)
		return Output{}, false, nil
	case whole && isDelimiter(piece, FrameEnd):
		frame, err := s.finish()
		return Output{Frame: &frame}, true, err
	case len(s.body)+len(piece) > MaxFrame:
		s.oversize = true
		return Output{}, false, nil
	default:
		if !s.oversize {
			s.body = append(s.body, piece...)
		}
		return Output{}, false, nil
	}
}

// takeEvent handles one piece of an event's line.
func (s *Scanner) takeEvent(piece []byte, ends bool) (out Output, done bool) {
	line := piece
	if len(s.event) > 0 || !ends {
		s.event = append(s.event, piece...)
		line = s.event
	}
	if !ends && len(line) <= MaxEvent {
		return Output{}, false
	}
	s.event = nil // the rest of a line that is too long is discarded too
	event, err := ReadEvent(line)
	if err != nil {
		_, _ = s.discard.Write(line)
		return Output{}, false
	}
	return Output{Event: &event}, true
}

func (s *Scanner) finish() (Frame, error) {
	if s.oversize {
		return Frame{}, s.abandon(fmt.Sprintf("larger than %d bytes", MaxFrame))
	}
	body := s.body
	s.reset()
	return parseFrame(body)
}

// abandon closes the open frame as malformed.
func (s *Scanner) abandon(reason string) error {
	bad := &Malformed{Reason: reason, Excerpt: excerpt(s.body)}
	s.reset()
	return bad
}

// reset frees the body: a run may go on for hours after one large frame.
func (s *Scanner) reset() { s.open, s.oversize, s.body = false, false, nil }

// isDelimiter accepts \r\n line ends, which a pty or a program from Windows writes.
func isDelimiter(line []byte, delimiter string) bool {
	return string(bytes.TrimRight(line, "\r\n")) == delimiter
}
