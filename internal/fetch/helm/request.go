// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch"
	archive "github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
)

// answer is what the repository says.
type answer struct {
	// unchanged tells that the index is the one that has the validator that was given; nothing else is set then.
	unchanged bool
	entry     *entry
	warning   string // says that another entry might have been chosen
	// validator names this version of the index, see validatorOf; "" for none.
	validator string
}

// readIndex asks for the index and chooses an entry of the chart. With the validator of an index that was read before, the
// server may answer that it is the same.
func (f *Fetcher) readIndex(ctx context.Context, wanted versions.Range, exact, validator string) (answer, error) {
	response, err := f.askIndex(ctx, validator)
	if err != nil {
		return answer{}, fetch.Describe(err, "its index")
	}
	defer response.Body.Close() //nolint:errcheck // only read from, and possibly not to the end
	conditional := isIndexValidator(validator)
	switch {
	case response.StatusCode == http.StatusNotModified && conditional:
		return answer{unchanged: true}, nil
	case response.StatusCode == http.StatusNotFound:
		return answer{}, fetch.Errorf(fetch.NotFound, "there is no index.yaml: check the URL of the repository; the chart is named in chart")
	case response.StatusCode != http.StatusOK:
		return answer{}, fetch.Describe(fetch.StatusError(response.StatusCode, response.Header, ""), "its index")
	}
	body, err := f.indexBody(response)
	if err != nil {
		return answer{}, fetch.Describe(err, "its index")
	}
	c := chooser{chart: f.options.Chart, exact: exact, newest: versions.Newest{Range: wanted}}
	if err := readEntries(body, &c); err != nil {
		return answer{}, fetch.Describe(fetch.NetworkError(err), "its index")
	}
	chosen, err := c.choice()
	if err != nil {
		return answer{}, err
	}
	return answer{entry: chosen, validator: validatorOf(response.Header), warning: c.warning(chosen)}, nil
}

func (f *Fetcher) askIndex(ctx context.Context, validator string) (*http.Response, error) {
	target := fetch.Below(f.repository, "/index.yaml")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the URL is malformed: %w", err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	request.Header.Set("User-Agent", "satchel")
	f.options.Login.Authorize(request)
	if tag, found := strings.CutPrefix(validator, tagMark); found {
		request.Header.Set("If-None-Match", tag)
	}
	if date, found := strings.CutPrefix(validator, dateMark); found {
		request.Header.Set("If-Modified-Since", date)
	}
	response, err := f.options.Client.Do(request)
	return response, fetch.NetworkError(err)
}

// indexBody is the text of the index, uncompressed and bounded.
func (f *Fetcher) indexBody(response *http.Response) (io.Reader, error) {
	most := f.options.Limits.HelmIndexBytes
	if response.ContentLength > most {
		return nil, tooLarge(most)
	}
	var body io.Reader = response.Body
	switch encoding := response.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(response.Body)
		if err != nil {
			return nil, fetch.Errorf(fetch.InvalidContent, "it is not the gzip stream that the server says it is")
		}
		body = unpacked
	default:
		return nil, fetch.Errorf(fetch.InvalidContent, "the server sends it with the content encoding %s, which was not asked for", fetch.Quote(encoding))
	}
	return &bounded{reader: body, left: most, most: most}, nil
}

func tooLarge(most int64) error {
	return fetch.Errorf(fetch.LimitExceeded, "it has more than %d bytes (--max-helm-index-bytes of the source controller)", most)
}

// bounded fails where more than a number of bytes come, and gives failures of decompression their reason.
type bounded struct {
	reader     io.Reader
	left, most int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, tooLarge(b.most)
	}
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		err = fetch.Errorf(fetch.InvalidContent, "it is damaged: %w", err)
	}
	return n, err
}

// The two kinds of validators of an index. What has neither mark is the validator of an archive.
const (
	tagMark  = "index etag "
	dateMark = "index modified "
)

func isIndexValidator(text string) bool {
	return strings.HasPrefix(text, tagMark) || strings.HasPrefix(text, dateMark)
}

// maxValidator bounds what is kept of a server's word.
const maxValidator = 256

// validatorOf is how the server names this version of the index, for a conditional request; "" where another index might have
// the same name: for a weak entity tag, and for a date, the last modification has to be older than the answer.
func validatorOf(header http.Header) string {
	tag, modified := header.Get("ETag"), header.Get("Last-Modified")
	settled := archive.Settled(modified, header.Get("Date"))
	switch {
	case len(tag) > maxValidator:
		return ""
	case tag != "" && (settled || !strings.HasPrefix(tag, "W/")):
		return tagMark + tag
	case tag == "" && settled:
		return dateMark + modified
	}
	return ""
}
