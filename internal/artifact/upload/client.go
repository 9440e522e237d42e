// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// welcomeTimeout is how long a client waits to be told to begin. The server asks the API server twice meanwhile.
const welcomeTimeout = 20 * time.Second

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 64 << 10

// Client uploads to one source controller.
type Client struct {
	// BaseURL leads there, as in http://127.0.0.1:9091.
	BaseURL string
	// Token is that of a ServiceAccount, with the audience Audience.
	Token string
	// Transport makes the requests. NewTransport returns one that waits to be welcome.
	Transport http.RoundTripper
}

// NewTransport returns a transport for a Client, without a proxy.
func NewTransport() *http.Transport {
	return &http.Transport{ExpectContinueTimeout: welcomeTimeout, ResponseHeaderTimeout: 5 * time.Minute, DisableKeepAlives: true}
}

// Present tells whether the controller has the content already.
func (c Client) Present(ctx context.Context, t Target) (bool, error) {
	reason, err := c.do(ctx, http.MethodGet, t, nil)
	var said *Error
	if errors.As(err, &said) && said.Reason == Absent {
		return false, nil
	}
	return reason == Present, err
}

// Put uploads what write writes, which has to be the canonical tar with the digest of the target. Where the controller has it
// already nothing is sent, and it is no error. An *Error is what the controller says; the error of write comes first.
func (c Client) Put(ctx context.Context, t Target, write func(w io.Writer) error) error {
	reader, writer := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		compressor := gzip.NewWriter(writer)
		err := write(compressor)
		if err == nil {
			err = compressor.Close()
		}
		writer.CloseWithError(err)
		packed <- err
	}()
	_, err := c.do(ctx, http.MethodPut, t, reader)
	_ = reader.Close() // it returns nil always; the writer ends now
	if failed := <-packed; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed
	}
	return err
}

// do sends one request, and returns the good news or the error that the answer is.
func (c Client) do(ctx context.Context, method string, t Target, body io.Reader) (Reason, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.BaseURL, "/")+t.path(), body)
	if err != nil {
		return "", fmt.Errorf("uploading to %s: %w", c.BaseURL, err)
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	if body != nil {
		request.Header.Set("Expect", "100-continue")
		request.Header.Set("Content-Type", "application/gzip")
	}
	response, err := c.Transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("the connection to the source controller broke: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return "", fmt.Errorf("the connection to the source controller broke: %w", err)
	}
	return parseAnswer(response, content)
}

func parseAnswer(response *http.Response, content []byte) (Reason, error) {
	var a answer
	if json.Unmarshal(content, &a) != nil || statuses[a.Reason] != response.StatusCode {
		return "", fmt.Errorf("what answers is no source controller of this version: it says %s", response.Status)
	}
	if response.StatusCode < http.StatusBadRequest {
		return a.Reason, nil
	}
	failed := &Error{Reason: a.Reason, Message: a.Message}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		failed.RetryAfter = time.Duration(seconds) * time.Second
	}
	return a.Reason, failed
}
