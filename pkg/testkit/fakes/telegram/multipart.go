package telegram

import (
	"errors"
	"io"
	"mime/multipart"
)

// readMultipart keeps the parts in memory: they are at most maxBody together.
func (p *params) readMultipart(body io.Reader, boundary string) error {
	reader := multipart.NewReader(body, boundary)
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return badRequest("can't parse multipart form data")
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return badRequest("can't parse multipart form data")
		}
		if part.FileName() == "" {
			p.values[part.FormName()] = string(data)
			continue
		}
		if len(data) > maxUpload {
			return tooLarge()
		}
		p.files[part.FormName()] = Upload{Name: part.FileName(), Data: data}
	}
}
