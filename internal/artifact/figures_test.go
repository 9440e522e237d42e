// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/measure"
)

// childFigures stores a folder and loads it again, and says how long each took and how much memory: folder, work folder.
func childFigures(args string) error {
	var source, work string
	if _, err := fmt.Sscan(args, &source, &work); err != nil {
		return err
	}
	store, err := storage.Open(storage.Options{Dir: filepath.Join(work, "store"), BaseURL: "http://127.0.0.1"})
	if err != nil {
		return err
	}
	listener, err := listen()
	if err != nil {
		return err
	}
	server := server.NewHandler(store, server.Options{}).Server("")
	go server.Serve(listener) //nolint:errcheck // the process ends with it
	base := "http://" + listener.Addr().String()
	loader, err := loader.New(loader.Options{
		Client: &http.Client{}, ServerURLs: []string{base}, CacheDir: filepath.Join(work, "cache"), Limits: fetch.DefaultLimits(),
	})
	if err != nil {
		return err
	}
	before, err := measure.PeakKiB("self")
	if err != nil {
		return err
	}
	start := time.Now()
	a, err := store.Put(context.Background(), owner, "main", os.DirFS(source))
	if err != nil {
		return err
	}
	stored := time.Since(start)
	a.URL = base + "/" + a.Path
	start = time.Now()
	content, err := loader.Load(context.Background(), owner, a)
	if err != nil {
		return err
	}
	loaded := time.Since(start)
	after, err := measure.PeakKiB("self")
	fmt.Println(stored.Milliseconds(), loaded.Milliseconds(), after-before)
	return errors.Join(err, content.Close())
}

// TestS2LargeBundle stores and loads 50 MiB that cannot be compressed.
func TestS2LargeBundle(t *testing.T) {
	source := t.TempDir()
	for i := range 5 {
		data := noise(uint64(30+i), 10<<20)["noise"].Data
		if err := os.WriteFile(filepath.Join(source, fmt.Sprint(i)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := child(t.Context(), "figures", source, t.TempDir()).Output()
	if err != nil {
		t.Fatal(err)
	}
	var stored, loaded, grown int
	if _, err := fmt.Sscan(string(out), &stored, &loaded, &grown); err != nil {
		t.Fatal(err)
	}
	t.Logf("50 MiB: stored in %d ms (%d MB/s), loaded in %d ms, memory grew by %d KiB", stored, 50*1049/max(stored, 1), loaded, grown)
	if stored+loaded > noisy*60_000 || (grown > noisy*64<<10 && !raceDetector) {
		t.Error("that is far more than 60 s, or 64 MiB")
	}
}

// TestF18ParallelDownloads lets consumers of one address download at the same time.
func TestF18ParallelDownloads(t *testing.T) {
	consumers, size := 200, 2<<20
	if full() {
		consumers, size = 1000, 50<<20
	}
	dir := t.TempDir()
	a := put(t, openStore(t, dir), noise(40, size))
	addr, process := startServer(t, dir)
	before, err := measure.PeakKiB(process)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var group sync.WaitGroup
	took := make([]time.Duration, consumers)
	for i := range consumers {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			response, err := client.Get("http://" + addr + "/" + a.Path)
			if err != nil {
				t.Error(err)
				return
			}
			n, err := io.Copy(io.Discard, response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil || n != *a.Size || response.StatusCode != http.StatusOK {
				t.Errorf("%d bytes came: %v", n, err)
			}
			took[i] = time.Since(start)
		})
	}
	group.Wait()
	after, err := measure.PeakKiB(process)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(took)
	t.Logf("%d downloads of %d MiB: half done after %v, all after %v, memory grew by %d KiB",
		consumers, size>>20, took[consumers/2], took[consumers-1], after-before)
	if after-before > noisy*64<<10 && !raceDetector {
		t.Error("that is far more than 64 MiB")
	}
}

// startServer runs a server of the storage folder in a process of its own, and returns its address and process id.
func startServer(t *testing.T, dir string) (addr, process string) {
	t.Helper()
	server := child(t.Context(), "serve", dir)
	input, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = server.Wait() // ended by the closed input or the context, whichever came first
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), strconv.Itoa(server.Process.Pid)
}

// TestImports keeps image, Git, registry and signature code out of the deployment controller, which does not import the
// package catalogs: that reads .indexignore by go-git's gitignore.
func TestImports(t *testing.T) {
	packages, err := exec.CommandContext(t.Context(), "go", "list", "./...").Output()
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}
	listed := []string{"list", "-deps"}
	for _, name := range strings.Fields(string(packages)) {
		if !strings.HasSuffix(name, "/artifact/catalogs") {
			listed = append(listed, name)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", listed...).Output()
	if err != nil {
		t.Fatalf("listing what the packages depend on: %v", err)
	}
	for dependency := range strings.Lines(string(out)) {
		for _, forbidden := range []string{
			"google/go-containerregistry", "go-git/", "oras.land/", "sigstore/", "notaryproject/", "ProtonMail/",
			"distribution/", "docker/", "fluxcd/pkg/oci", "fluxcd/pkg/git", "fluxcd/pkg/artifact", "client-go/", "controller-runtime/", "os/exec\n",
		} {
			if strings.Contains(dependency, forbidden) {
				t.Errorf("it depends on %s", dependency)
			}
		}
	}
}
