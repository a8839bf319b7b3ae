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

// Scanner finds the frames in an agent's stdout. Its memory is bounded by
// [MaxFrame] whatever the agent prints.
type Scanner struct {
	in      *bufio.Reader
	discard io.Writer
	midLine bool // the last piece read did not end its line

	open     bool // between the delimiters
	oversize bool
	body     []byte
}

// NewScanner reads frames from r and writes everything else to discard: one Write
// per line, or several for a line longer than 32 KiB. Errors of discard are
// ignored: a full log disk must not lose an answer.
func NewScanner(r io.Reader, discard io.Writer) *Scanner {
	return &Scanner{in: bufio.NewReaderSize(r, lineBuffer), discard: discard}
}

// Next returns the next frame. For an invalid frame it returns a [*Malformed]
// error and can be called again; any other error is the reader's and final,
// io.EOF at its end.
func (s *Scanner) Next() (Frame, error) {
	for {
		whole := !s.midLine
		piece, err := s.in.ReadSlice('\n')
		s.midLine = errors.Is(err, bufio.ErrBufferFull)
		if len(piece) > 0 {
			frame, done, bad := s.take(piece, whole && !s.midLine)
			if done {
				return frame, bad
			}
		}
		if err == nil || s.midLine {
			continue
		}
		if s.open {
			return Frame{}, s.abandon("output ended inside the frame")
		}
		return Frame{}, err
	}
}

// take handles one piece of output; only a whole line can be a delimiter. done
// means that it completed a frame, which is valid if err is nil.
func (s *Scanner) take(piece []byte, whole bool) (frame Frame, done bool, err error) {
	switch {
	case whole && isDelimiter(piece, FrameStart):
		if s.open {
			err = s.abandon("a second frame began before it ended")
		}
		s.open = true
		return Frame{}, err != nil, err
	case !s.open:
		_, _ = s.discard.Write(piece)
		return Frame{}, false, nil
	case whole && isDelimiter(piece, FrameEnd):
		frame, err = s.finish()
		return frame, true, err
	case len(s.body)+len(piece) > MaxFrame:
		s.oversize = true
		return Frame{}, false, nil
	default:
		if !s.oversize {
			s.body = append(s.body, piece...)
		}
		return Frame{}, false, nil
	}
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
