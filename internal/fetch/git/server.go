// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// server is a repository that answered with its references.
type server struct {
	session transport.UploadPackSession
	refs    *packp.AdvRefs
	traffic *traffic
}

// connect asks a server for its references, of which it keeps those that are needed.
func (f *Fetcher) connect(ctx context.Context, need needed) (*server, error) {
	s := &server{traffic: &traffic{next: f.client.Transport}}
	s.traffic.allow(int64(f.limits.GitRefs)*refBytes + refsOverhead)
	s.traffic.filter = func(body io.ReadCloser) io.ReadCloser {
		return newReferences(body, need, f.limits.GitRefs, s.traffic)
	}
	client := githttp.NewClientWithOptions(&http.Client{Transport: s.traffic}, nil)
	session, err := client.NewUploadPackSession(f.endpoint(), nil)
	if err != nil {
		return nil, s.traffic.explain(err)
	}
	refs, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, fetch.Errorf(fetch.NotFound, "the repository is empty")
	}
	if err != nil {
		return nil, s.traffic.explain(err)
	}
	s.session, s.refs = session, refs
	return s, nil
}

// endpoint is the URL in go-git's terms. It is not given go-git's parser, which takes local paths as well.
func (f *Fetcher) endpoint() *transport.Endpoint {
	host := f.url.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port, err := strconv.Atoi(f.url.Port())
	if err != nil {
		port = 0 // none stated
	}
	return &transport.Endpoint{
		Protocol: f.url.Scheme, Host: host, Port: port, Path: strings.TrimRight(f.url.EscapedPath(), "/"),
	}
}

// download fetches the pack of one commit without history and indexes it.
func (f *Fetcher) download(ctx context.Context, commit plumbing.Hash, scratch string) (*pack, error) {
	s, err := f.connect(ctx, needCommit(commit))
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(scratch, "pack"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = s.save(ctx, commit, file, f.limits)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return openPack(ctx, file, scratch, f.limits)
}

// save writes the pack of one commit to a file.
func (s *server) save(ctx context.Context, commit plumbing.Hash, file io.Writer, l fetch.Limits) error {
	request, asked, err := s.request(commit)
	if err != nil {
		return err
	}
	s.traffic.allow(l.GitPackBytes)
	s.traffic.filter = nil
	response, err := s.session.UploadPack(ctx, request)
	if err != nil {
		err = s.traffic.explain(err)
		if !asked && fetch.ReasonOf(err) == fetch.InvalidContent {
			return moved(commit)
		}
		return err
	}
	_, err = io.Copy(file, demultiplexed(request.Capabilities, response))
	if err = s.traffic.explain(err); err != nil {
		return errors.Join(err, response.Close())
	}
	return fetch.NetworkError(response.Close())
}

// request asks for one commit. A server gives away what it advertises; what it does not, only when it says so. The
// second result tells that it must have what was asked for.
func (s *server) request(commit plumbing.Hash) (*packp.UploadPackRequest, bool, error) {
	want, advertised := s.advertises(commit)
	if !advertised && !s.refs.Capabilities.Supports(capability.AllowReachableSHA1InWant) &&
		!s.refs.Capabilities.Supports("allow-any-sha1-in-want") {
		return nil, false, moved(commit)
	}
	request := packp.NewUploadPackRequestFromCapabilities(s.refs.Capabilities)
	request.Wants = []plumbing.Hash{want}
	if s.refs.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(1)
		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return nil, false, fetch.Errorf(fetch.InvalidContent, "preparing the request: %w", err)
		}
	}
	if s.refs.Capabilities.Supports(capability.NoProgress) {
		if err := request.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, false, fetch.Errorf(fetch.InvalidContent, "preparing the request: %w", err)
		}
	}
	return request, advertised, nil
}

// advertises returns what to ask for to get a commit: the commit, or the tag that leads to it.
func (s *server) advertises(commit plumbing.Hash) (plumbing.Hash, bool) {
	if s.refs.Head != nil && *s.refs.Head == commit {
		return commit, true
	}
	for _, hash := range s.refs.References {
		if hash == commit {
			return commit, true
		}
	}
	for name, hash := range s.refs.Peeled {
		if tag, found := s.refs.References[name]; found && hash == commit {
			return tag, true
		}
	}
	return commit, false
}

func moved(commit plumbing.Hash) error {
	return fetch.Errorf(fetch.Moved, "the server no longer gives the commit %s away: "+
		"the reference has moved, resolve it again", commit)
}

// demultiplexed returns the pack without the server's chatter.
func demultiplexed(agreed *capability.List, response io.Reader) io.Reader {
	switch {
	case agreed.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, response)
	case agreed.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, response)
	}
	return response
}

// traffic is the transport of one session. It counts what comes in, turns failed answers into errors before go-git
// reads them, and remembers the first failure, which go-git hides.
type traffic struct {
	next http.RoundTripper
	// filter is what the list of references goes through; nil once it was read.
	filter func(io.ReadCloser) io.ReadCloser

	mutex  sync.Mutex
	left   int64
	limit  int64
	failed error
}

// allow sets what may come in from now on.
func (t *traffic) allow(bytes int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.left, t.limit = bytes, bytes
}

// RoundTrip implements http.RoundTripper.
func (t *traffic) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = errors.Join(fetch.StatusError(response.StatusCode, response.Header, ""), response.Body.Close())
	}
	if err != nil {
		return nil, t.fail(fetch.NetworkError(err))
	}
	response.Body = &countedBody{ReadCloser: response.Body, traffic: t}
	if t.filter != nil && response.StatusCode < http.StatusMultipleChoices {
		response.Body = t.filter(response.Body)
	}
	return response, nil
}

func (t *traffic) fail(err error) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.failed == nil {
		t.failed = err
	}
	return err
}

// count takes n bytes off what may come in.
func (t *traffic) count(n int) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.left -= int64(n)
	if t.left < 0 {
		return fetch.Errorf(fetch.LimitExceeded, "the server sends more than %d bytes", t.limit)
	}
	return nil
}

// explain returns the failure behind what go-git says, or says that the server's answer makes no sense.
func (t *traffic) explain(err error) error {
	if err == nil {
		return nil
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var local *fs.PathError
	switch {
	case t.failed != nil:
		return t.failed
	case errors.As(err, &local):
		return err
	case fetch.ReasonOf(err) != "", errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fetch.NetworkError(err)
	}
	return fetch.Errorf(fetch.InvalidContent, "the server's answer is not that of a Git server: %s", fetch.Quote(err.Error()))
}

// countedBody is the body of an answer.
type countedBody struct {
	io.ReadCloser
	traffic *traffic
}

// Read implements io.Reader.
func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if limit := c.traffic.count(n); limit != nil {
		return 0, c.traffic.fail(limit)
	}
	if err != nil && err != io.EOF {
		return n, c.traffic.fail(err)
	}
	return n, err
}
