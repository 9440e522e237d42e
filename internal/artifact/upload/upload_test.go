// SPDX-License-Identifier: Apache-2.0

package upload_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// quick is a pace at which tests need not wait long.
var quick = upload.Pace{Idle: 300 * time.Millisecond, Period: 600 * time.Millisecond, Least: 1 << 10, Longest: time.Minute}

// receiver is a server with a store of its own, which accepts clients with the valid token.
type receiver struct {
	dir, address string
	store        *storage.Store

	mu    sync.Mutex
	ended []upload.Reason
}

var owner = artifact.SourceOwner("team", "app")

func newReceiver(t *testing.T, limits fetch.Limits, change func(*upload.Options)) *receiver {
	t.Helper()
	r := &receiver{dir: t.TempDir()}
	var err error
	if r.store, err = storage.Open(storage.Options{Dir: filepath.Join(r.dir, "artifacts"), BaseURL: "http://a"}); err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(r.dir, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	o := upload.Options{
		Identify: func(_ context.Context, token string) (string, error) {
			if token == "broken" {
				return "", errors.New("the API server is away")
			}
			return token, nil
		},
		Accept: func(_ context.Context, user string, target upload.Target) error {
			if user != "right" {
				return upload.Errorf(upload.Forbidden, "%s may not upload for %s", user, target)
			}
			return nil
		},
		Present: func(ctx context.Context, target upload.Target) (bool, error) {
			_, err := r.store.Find(ctx, artifact.SourceOwner(target.Namespace, target.Name), target.Digest)
			return err == nil, nil
		},
		Store: func(ctx context.Context, target upload.Target, archive io.Reader) error {
			return r.take(ctx, scratch, limits, target, archive)
		},
		Observe: func(ended upload.Reason, _ int64) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, ended)
		},
		Tell:         func(upload.Target, error) {},
		PerNamespace: 1, Most: 2, Pace: quick,
	}
	if change != nil {
		change(&o)
	}
	server := upload.Server("", o)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	r.address = listener.Addr().String()
	return r
}

func (r *receiver) take(ctx context.Context, scratch string, limits fetch.Limits, target upload.Target, archive io.Reader) error {
	dir, err := os.MkdirTemp(scratch, "upload-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tree, err := fetch.NewTree(dir, limits)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	if err := tree.UntarGzip(ctx, tree.Metered(archive)); err != nil {
		return err
	}
	_, err = r.store.PutExactly(ctx, artifact.SourceOwner(target.Namespace, target.Name), target.Digest, tree.FS())
	return err
}

func (r *receiver) client(token string) upload.Client {
	return upload.Client{BaseURL: "http://" + r.address, Token: token, Transport: upload.NewTransport()}
}

// kept lists all files that the receiver has, temporary ones too.
func (r *receiver) kept(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(r.dir, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func take(t *testing.T, files fstest.MapFS) *upload.Snapshot {
	t.Helper()
	s, err := upload.Take(t.Context(), files, fetch.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func target(digest string) upload.Target {
	return upload.Target{Namespace: owner.Namespace, Name: owner.Name, Digest: digest}
}

// put uploads a snapshot.
func put(t *testing.T, c upload.Client, s *upload.Snapshot) error {
	t.Helper()
	return c.Put(t.Context(), target(s.Digest), func(w io.Writer) error { return s.Write(t.Context(), w) })
}

func reasonOf(err error) upload.Reason {
	var said *upload.Error
	if errors.As(err, &said) {
		return said.Reason
	}
	return ""
}

func noise(t *testing.T, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}

// What is uploaded is the artifact that the digest names; a second time nothing is sent.
func TestUploadIsStoredOnce(t *testing.T) {
	r := newReceiver(t, fetch.DefaultLimits(), nil)
	s := take(t, fstest.MapFS{"manifests/a.yaml": {Data: []byte("a: 1\n")}, "big": {Data: noise(t, 3<<20)}})
	c := r.client("right")
	if present, err := c.Present(t.Context(), target(s.Digest)); present || err != nil {
		t.Fatalf("present before: %v, %v", present, err)
	}
	if err := put(t, c, s); err != nil {
		t.Fatal(err)
	}
	found, err := r.store.Find(t.Context(), owner, s.Digest)
	if err != nil || found.Revision != s.Digest {
		t.Fatalf("stored is %v: %v", found.Revision, err)
	}
	if s.Files != 2 || s.Bytes < 3<<20 {
		t.Errorf("the snapshot has %d files, %d bytes", s.Files, s.Bytes)
	}
	if present, err := c.Present(t.Context(), target(s.Digest)); !present || err != nil {
		t.Errorf("present after: %v, %v", present, err)
	}
	written := 0
	err = c.Put(t.Context(), target(s.Digest), func(w io.Writer) error {
		n, err := w.Write(noise(t, 1<<20))
		written += n
		return err
	})
	if err != nil {
		t.Errorf("once more: %v", err)
	}
	if written == 1<<20 {
		t.Error("what is there already was sent once more")
	}
	if got := r.kept(t); len(got) != 2 {
		t.Errorf("kept are %v, want an archive and its checksum", got)
	}
}

// Other users are refused, and nothing of theirs is stored.
func TestUploadIsRefused(t *testing.T) {
	small := fetch.DefaultLimits()
	small.FileBytes = 1 << 10
	s := take(t, fstest.MapFS{"a": {Data: noise(t, 4<<10)}})
	for name, tc := range map[string]struct {
		reason string
		token  string
		limits fetch.Limits
		change func(*upload.Options)
		want   upload.Reason
	}{
		"no token":       {reason: "the user is unknown", want: upload.Unauthenticated},
		"other account":  {reason: "it has no permission", token: "wrong", want: upload.Forbidden},
		"no API server":  {reason: "nothing is decided without it, and its error is not shown", token: "broken", want: upload.Unavailable},
		"too large":      {reason: "limits hold for uploads, too", token: "right", limits: small, want: upload.LimitExceeded},
		"no room":        {reason: "the owner's error is said", token: "right", change: func(o *upload.Options) { o.Store = failing(upload.Errorf(upload.QuotaExceeded, "full")) }, want: upload.QuotaExceeded},
		"internal error": {reason: "internal errors are not shown", token: "right", change: func(o *upload.Options) { o.Store = failing(errors.New("secret")) }, want: upload.Unavailable},
		"enough":         {reason: "others are told to come back", token: "right", change: func(o *upload.Options) { o.Most = 0 }, want: upload.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.limits == (fetch.Limits{}) {
				tc.limits = fetch.DefaultLimits()
			}
			r := newReceiver(t, tc.limits, tc.change)
			err := put(t, r.client(tc.token), s)
			if reasonOf(err) != tc.want {
				t.Fatalf("%s: %v (%s), want %s", tc.reason, err, reasonOf(err), tc.want)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "away") {
				t.Errorf("%s: it says %v", tc.reason, err)
			}
			if got := r.kept(t); len(got) > 0 {
				t.Errorf("%s: kept are %v", tc.reason, got)
			}
		})
	}
}

func failing(err error) func(context.Context, upload.Target, io.Reader) error {
	return func(context.Context, upload.Target, io.Reader) error { return err }
}

// Content that is not what its digest says is never stored.
func TestUploadOfOtherContent(t *testing.T) {
	r := newReceiver(t, fetch.DefaultLimits(), nil)
	announced, other := take(t, fstest.MapFS{"a": {Data: []byte("1")}}), take(t, fstest.MapFS{"a": {Data: []byte("2")}})
	c := r.client("right")
	for name, tc := range map[string]struct {
		write func(w io.Writer) error
		want  upload.Reason
	}{
		"another folder": {func(w io.Writer) error { return other.Write(t.Context(), w) }, upload.DigestMismatch},
		"no tar":         {func(w io.Writer) error { _, err := w.Write(noise(t, 4096)); return err }, upload.InvalidContent},
		"cut tar": {func(w io.Writer) error {
			var whole bytes.Buffer
			err := announced.Write(t.Context(), &whole)
			return errors.Join(err, writeAll(w, whole.Bytes()[:600]))
		}, upload.InvalidContent},
	} {
		if err := c.Put(t.Context(), target(announced.Digest), tc.write); reasonOf(err) != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		if got := r.kept(t); len(got) > 0 {
			t.Errorf("%s: kept are %v", name, got)
		}
	}
	if err := put(t, c, announced); err != nil {
		t.Errorf("the right content afterwards: %v", err)
	}
}

func writeAll(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

// raw sends the head of a PUT and the given bytes, and leaves the connection open.
func (r *receiver) raw(t *testing.T, digest string, length int, body []byte) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	head := fmt.Sprintf("PUT /upload/team/app/%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer right\r\nContent-Length: %d\r\n\r\n", digest, length)
	if _, err := conn.Write(append([]byte(head), body...)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func packed(t *testing.T, s *upload.Snapshot) []byte {
	t.Helper()
	var whole bytes.Buffer
	compressor := gzip.NewWriter(&whole)
	if err := errors.Join(s.Write(t.Context(), compressor), compressor.Close()); err != nil {
		t.Fatal(err)
	}
	return whole.Bytes()
}

// waitEnded waits until so many requests were answered.
func (r *receiver) waitEnded(t *testing.T, n int) []upload.Reason {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		ended := append([]upload.Reason(nil), r.ended...)
		r.mu.Unlock()
		if len(ended) >= n {
			return ended
		}
		if time.Now().After(deadline) {
			t.Fatalf("answered are %v", ended)
		}
	}
}

// An upload that is cut off leaves nothing, wherever that happens, and can be run again.
func TestUploadIsCutOff(t *testing.T) {
	r := newReceiver(t, fetch.DefaultLimits(), nil)
	s := take(t, fstest.MapFS{"a": {Data: noise(t, 1<<20)}, "b": {Data: noise(t, 1<<20)}})
	whole := packed(t, s)
	for i, percent := range []int{0, 10, 50, 99} {
		conn := r.raw(t, s.Digest, len(whole), whole[:len(whole)*percent/100])
		_ = conn.Close()
		if ended := r.waitEnded(t, i+1); ended[i] != upload.CutOff {
			t.Errorf("cut off at %d %%: %s", percent, ended[i])
		}
		if got := r.kept(t); len(got) > 0 {
			t.Errorf("cut off at %d %%: kept are %v", percent, got)
		}
	}
	if err := put(t, r.client("right"), s); err != nil {
		t.Errorf("run again: %v", err)
	}
}

// A client that sends nothing, or hardly anything, is disconnected, and does not keep others waiting for long.
func TestUploadIsTooSlow(t *testing.T) {
	r := newReceiver(t, fetch.DefaultLimits(), nil)
	s := take(t, fstest.MapFS{"a": {Data: noise(t, 1<<20)}})
	whole := packed(t, s)
	stalled := r.raw(t, s.Digest, len(whole), whole[:1000])
	if answer := answerOf(t, stalled); answer != http.StatusRequestTimeout {
		t.Errorf("who sends nothing is answered with %d", answer)
	}
	crawling := r.raw(t, s.Digest, len(whole), whole[:100])
	go func() {
		for i := range len(whole) - 100 {
			if _, err := crawling.Write(whole[100+i : 101+i]); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond) // the pace of an attacker
		}
	}()
	if answer := answerOf(t, crawling); answer != http.StatusRequestTimeout {
		t.Errorf("who crawls is answered with %d", answer)
	}
	if err := put(t, r.client("right"), s); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// One namespace has one upload at a time here, and another one is told to come back.
func TestUploadsOfANamespaceTakeTurns(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	r := newReceiver(t, fetch.DefaultLimits(), func(o *upload.Options) {
		store, once := o.Store, sync.Once{}
		o.Store = func(ctx context.Context, target upload.Target, archive io.Reader) error {
			once.Do(func() { close(began) })
			<-goOn
			return store(ctx, target, archive)
		}
	})
	s := take(t, fstest.MapFS{"a": {Data: []byte("a")}})
	first := make(chan error, 1)
	go func() { first <- put(t, r.client("right"), s) }()
	<-began
	if err := put(t, r.client("right"), s); reasonOf(err) != upload.Busy {
		t.Errorf("a second one at the same time: %v, want Busy", err)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("the first one: %v", err)
	}
}

func answerOf(t *testing.T, conn net.Conn) int {
	t.Helper()
	head := make([]byte, 12)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(conn, head); err != nil {
		t.Fatalf("no answer: %v", err)
	}
	code := 0
	for _, digit := range head[9:] {
		code = code*10 + int(digit-'0')
	}
	return code
}

// There is one spelling of a path, and it leads nowhere else.
func TestOtherPathsAreNoUploads(t *testing.T) {
	r := newReceiver(t, fetch.DefaultLimits(), nil)
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, path := range []string{
		"/", "/upload/", "/upload/team/app", "/upload/team/app/sha256:ab", "/upload/team/../app/" + digest, "/upload/team/app/" + digest + "/",
		"/upload/team/%61pp/" + digest, "/upload/Team/app/" + digest, "/upload//app/" + digest, "/upload/team/" + strings.Repeat("a", 64) + "/" + digest,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s is answered with %d", path, response.StatusCode)
		}
	}
}

// What the source controller would refuse is refused before anything is sent, and nothing stays on the disk.
func TestSnapshotIsCheckedFirst(t *testing.T) {
	small := fetch.DefaultLimits()
	small.FileBytes, small.Entries = 10, 3
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  fetch.Reason
	}{
		"large file":     {fstest.MapFS{"a": {Data: []byte("12345678901")}}, fetch.LimitExceeded},
		"many files":     {fstest.MapFS{"a": {}, "b": {}, "c": {}, "d": {}}, fetch.LimitExceeded},
		"name of a flag": {fstest.MapFS{"-rf": {}}, fetch.InvalidContent},
	} {
		t.Setenv("TMPDIR", t.TempDir())
		s, err := upload.Take(t.Context(), tc.files, small)
		if s != nil {
			_ = s.Close()
		}
		if fetch.ReasonOf(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := filepath.Glob(os.TempDir() + "/*"); len(left) > 0 {
			t.Errorf("%s: left is %v", name, left)
		}
	}
}

// Two folders with the same files have the same digest, whatever else differs; it is that of the store.
func TestDigestIsTheArtifacts(t *testing.T) {
	a := take(t, fstest.MapFS{"x/a": {Data: []byte("1"), Mode: 0o600}, "b": {Data: []byte("2")}})
	b := take(t, fstest.MapFS{"b": {Data: []byte("2"), ModTime: time.Unix(1, 0)}, "x/a": {Data: []byte("1"), Mode: 0o755}})
	if a.Digest != b.Digest {
		t.Errorf("%s and %s", a.Digest, b.Digest)
	}
	store, err := storage.Open(storage.Options{Dir: t.TempDir(), BaseURL: "http://a"})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := store.Put(t.Context(), owner, "", a.FS())
	if err != nil || stored.Revision != a.Digest {
		t.Errorf("stored as %s: %v; the snapshot has %s", stored.Revision, err, a.Digest)
	}
}
