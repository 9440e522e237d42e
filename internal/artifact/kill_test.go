// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

const childVariable = "SATCHEL_ARTIFACT_TEST_CHILD"

// TestMain runs a child of this test binary when the environment asks for one.
func TestMain(m *testing.M) {
	role, rest, _ := strings.Cut(os.Getenv(childVariable), " ")
	var err error
	switch role {
	case "":
		os.Exit(m.Run())
	case "put":
		err = childPut(rest)
	case "load":
		err = childLoad(rest)
	case "figures":
		err = childFigures(rest)
	case "serve":
		err = childServe(rest)
	default:
		err = fmt.Errorf("no such role: %s", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child runs this test binary in a role.
func child(ctx context.Context, args ...any) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	cmd.Stderr = os.Stderr
	return cmd
}

func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// killer kills this process before or after the n-th operation, in the middle of it when that is a write.
func killer(n int, before bool) hookFS {
	count := 0
	hooks := hookFS{short: true}
	if before {
		hooks.before = func(string) error {
			if count++; count == n {
				die()
			}
			return nil
		}
		return hooks
	}
	hooks.after = func(string) {
		if count++; count == n {
			die()
		}
	}
	return hooks
}

// childPut stores a tree in the folder and dies at the point that the arguments give: number, "before" or "after", folder.
func childPut(args string) error {
	var n int
	var when, dir string
	if _, err := fmt.Sscan(args, &n, &when, &dir); err != nil {
		return err
	}
	store, err := storage.Open(storage.Options{Dir: dir, BaseURL: "http://artifacts.test", FS: killer(n, when == "before")})
	if err != nil {
		return err
	}
	_, err = store.Put(context.Background(), owner, "main", noise(3, 200_000))
	return err
}

// TestF1KilledPut kills a process at each operation of a Put, and in the middle of each write.
func TestF1KilledPut(t *testing.T) {
	points, survived := 0, 0
	for n := 1; survived < 2; n++ {
		survived = 0
		for _, when := range []string{"before", "after"} {
			dir := t.TempDir()
			err := child(t.Context(), "put", n, when, dir).Run()
			if err == nil {
				survived++
				continue
			}
			if !killed(err) {
				t.Fatal(err)
			}
			points++
			afterKilledPut(t, dir, fmt.Sprintf("%s operation %d", when, n))
		}
	}
	if points < 30 {
		t.Errorf("only %d points were tried", points)
	}
	t.Logf("killed at %d points", points)
}

// killed tells whether a child ended by SIGKILL.
func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}

func afterKilledPut(t *testing.T, dir, point string) {
	t.Helper()
	wholeOrNothing(t, dir)
	store := openStore(t, dir)
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("%s: left after the start: %v", point, left)
	}
	// A client may request what is not stored yet.
	a := put(t, openStore(t, t.TempDir()), noise(3, 200_000))
	answer := get(store, a)
	if answer.Code != http.StatusNotFound && digestOf(answer.Body.Bytes()) != a.Digest {
		t.Errorf("%s: GET answered %d with other bytes", point, answer.Code)
	}
	again := put(t, store, noise(3, 200_000))
	if err := openStore(t, dir).Verify(t.Context(), owner, again); err != nil {
		t.Errorf("%s: %v", point, err)
	}
}

// childLoad loads an artifact and dies once so many bytes are written: bytes, cache folder, artifact as JSON.
func childLoad(args string) error {
	parts := strings.SplitN(args, " ", 3)
	most, err := strconv.Atoi(parts[0])
	if err != nil {
		return err
	}
	var a meta.Artifact
	if err := json.Unmarshal([]byte(parts[2]), &a); err != nil {
		return err
	}
	loader, err := loader.New(loader.Options{
		Client: &http.Client{}, ServerURLs: []string{strings.TrimSuffix(a.URL, "/"+a.Path)}, CacheDir: parts[1],
		Limits: fetch.DefaultLimits(), FS: dyingFS{left: &most},
	})
	if err != nil {
		return err
	}
	_, err = loader.Load(context.Background(), owner, a)
	return err
}

// dyingFS kills this process when so many bytes are written.
type dyingFS struct {
	volume.OSFileSystem
	left *int
}

func (d dyingFS) Create(root *os.Root, name string) (volume.File, error) {
	file, err := d.OSFileSystem.Create(root, name)
	return dyingFile{file, d.left}, err
}

type dyingFile struct {
	volume.File
	left *int
}

func (f dyingFile) Write(p []byte) (int, error) {
	if len(p) < *f.left {
		*f.left -= len(p)
		return f.File.Write(p)
	}
	n, err := f.File.Write(p[:*f.left])
	die()
	return n, err
}

// TestF2KilledDownload kills a consumer in the middle of a download.
func TestF2KilledDownload(t *testing.T) {
	store := openStore(t, t.TempDir())
	server := httptest.NewServer(server.NewHandler(store, server.Options{}))
	defer server.Close()
	a := put(t, store, noise(4, 400_000))
	a.URL = server.URL + "/" + a.Path
	advertised, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, percent := range []int64{10, 50, 99} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			dir := t.TempDir()
			if err := child(t.Context(), "load", *a.Size*percent/100, dir, string(advertised)).Run(); !killed(err) {
				t.Fatalf("the child ended with %v", err)
			}
			if len(temporary(t, dir)) == 0 {
				t.Error("nothing shows that the child was in the middle of it")
			}
			loader := newLoader(t, dir, server.URL)
			if left := temporary(t, dir); len(left) > 0 {
				t.Errorf("left after the start: %v", left)
			}
			if cached := archives(t, dir); len(cached) > 0 {
				t.Errorf("a part was taken for the whole: %v", cached)
			}
			content, err := loader.Load(t.Context(), owner, a)
			if err != nil {
				t.Fatal(err)
			}
			if err := content.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func unzip(t *testing.T, data []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Errorf("no gzip archive: %v", err)
		return nil
	}
	unzipped, err := io.ReadAll(reader)
	if err != nil {
		t.Errorf("a damaged gzip archive: %v", err)
	}
	return unzipped
}

// childServe serves the storage folder until its standard input ends, and says where.
func childServe(dir string) error {
	store, err := storage.Open(storage.Options{Dir: dir, BaseURL: "http://artifacts.test"})
	if err != nil {
		return err
	}
	server := server.NewHandler(store, server.Options{}).Server("")
	listener, err := listen()
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
