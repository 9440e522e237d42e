// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/tests/measure"
)

func TestF13RemovedWhileDownloading(t *testing.T) {
	store := openStore(t, t.TempDir())
	a := put(t, store, noise(10, 3<<20))
	addr := serve(t, store)
	response, err := http.Get("http://" + addr + "/" + a.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // a test
	if err := store.Remove(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err != nil || digestOf(data) != a.Digest {
		t.Errorf("%d bytes came: %v", len(data), err)
	}
	if answer := get(store, a); answer.Code != http.StatusNotFound {
		t.Errorf("a removed artifact is answered with %d", answer.Code)
	}
}

// serve serves a store until the test ends and returns the address.
func serve(t *testing.T, store *storage.Store, over ...func(net.Listener) net.Listener) string {
	t.Helper()
	return serveWith(t, server.NewHandler(store, server.Options{}), over...)
}

// serveWith runs Handler.Server until the test ends and returns its address.
func serveWith(t *testing.T, handler *server.Handler, over ...func(net.Listener) net.Listener) string {
	t.Helper()
	server := handler.Server("127.0.0.1:0")
	listener, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range over {
		listener = layer(listener)
		server.ErrorLog = log.New(io.Discard, "", 0) // it tells of each handshake that fails
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// TestF18SlowPeersOverTLS lets peers do nothing before, in and after the handshake.
func TestF18SlowPeersOverTLS(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	a := put(t, store, files(map[string]string{"a": "1"}))
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	addr := serve(t, store, func(l net.Listener) net.Listener { return tls.NewListener(l, other.TLS) })
	encrypted := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"}
	encrypted.RootCAs.AddCert(other.Certificate())
	path := "GET /" + a.Path + " HTTP/1.1\r\nHost: x\r\n"
	plain := map[string]string{"silent": "", "half a record": "\x16\x03\x01\x02\x00\x01", "no TLS": path + "\r\n", "a record of nothing": "\x16\x03\x01\x00\x00"}
	inside := map[string]string{"silent inside": "", "half header": path, "idle": strings.Replace(path, "GET", "HEAD", 1) + "\r\n"}
	var group sync.WaitGroup
	bear := func(name, sent string, settings *tls.Config) {
		for range 20 {
			group.Go(func() {
				if took, err := untilClosed(addr, sent, false, settings); err != nil || took > noisy*10*time.Second {
					t.Errorf("%s: closed after %v: %v", name, took, err)
				}
			})
		}
	}
	for name, sent := range plain {
		bear(name, sent, nil)
	}
	for name, sent := range inside {
		bear(name, sent, encrypted)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: encrypted}}
	t.Cleanup(client.CloseIdleConnections)
	response, err := client.Get("https://" + addr + "/" + a.Path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || digestOf(data) != a.Digest || response.ProtoMajor != 1 {
		t.Errorf("among them %d bytes came with %s: %v", len(data), response.Proto, err)
	}
	group.Wait()
}

// TestF18SlowPeersAreCut lets many peers do nothing at each stage of a request, and some one download slowly.
func TestF18SlowPeersAreCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := put(t, openStore(t, dir), noise(11, 8<<20))
	addr, process := startServer(t, dir)
	before, err := measure.PeakKiB(process)
	if err != nil {
		t.Fatal(err)
	}
	path := "GET /" + a.Path + " HTTP/1.1\r\nHost: x\r\n"
	peers, behaviours := 20, map[string]string{
		"silent":       "",
		"half header":  path,
		"body to come": strings.Replace(path, "GET", "POST", 1) + "Content-Length: 100\r\n\r\nx",
		"idle":         strings.Replace(path, "GET", "HEAD", 1) + "\r\n",
		"not reading":  path + "\r\n",
		"dripping":     path, // and more of it from time to time
	}
	if full() {
		peers = 100
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	slowest := map[string]time.Duration{}
	for name, sent := range behaviours {
		for range peers {
			group.Go(func() {
				took, err := bornWith(addr, name, sent)
				if err != nil || took > noisy*10*time.Second {
					t.Errorf("%s: closed after %v: %v", name, took, err)
				}
				mu.Lock()
				defer mu.Unlock()
				slowest[name] = max(slowest[name], took.Round(time.Millisecond))
			})
		}
	}
	group.Go(func() { slowDownload(t, addr, a) })
	start := time.Now()
	response, err := http.Get("http://" + addr + "/" + a.Path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || digestOf(data) != a.Digest {
		t.Errorf("among them %d bytes came: %v", len(data), err)
	}
	t.Logf("8 MiB among %d slow peers took %v", len(behaviours)*peers, time.Since(start))
	group.Wait()
	after, err := measure.PeakKiB(process)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("closed at the latest after %v; memory grew by %d KiB", slowest, after-before)
	if after-before > noisy*64<<10 && !raceDetector {
		t.Error("that is far more than 64 MiB")
	}
}

// bornWith measures how long the server tolerates a peer that behaves in a way.
func bornWith(addr, name, sent string) (time.Duration, error) {
	if name == "dripping" {
		return untilDripsEnd(addr, sent)
	}
	return untilClosed(addr, sent, name == "not reading", nil)
}

// untilDripsEnd measures how long the server tolerates a peer that sends an endless header, a line at a time.
func untilDripsEnd(addr, sent string) (time.Duration, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // a test
	start := time.Now()
	for time.Since(start) < noisy*10*time.Second {
		if _, err := io.WriteString(conn, sent); err != nil {
			return time.Since(start), nil // closed or reset
		}
		sent = "X-Drip: x\r\n"
		if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			return 0, err
		}
		if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
			return time.Since(start), nil
		}
	}
	return time.Since(start), os.ErrDeadlineExceeded
}

// untilClosed measures how long the server tolerates a peer that sends only so much. One that waits reads nothing until
// the server must have closed the connection; no time is measured then.
func untilClosed(addr, sent string, waits bool, encrypted *tls.Config) (time.Duration, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // a test
	if encrypted != nil {
		conn = tls.Client(conn, encrypted)
	}
	start := time.Now()
	if _, err := conn.Write([]byte(sent)); err != nil {
		return 0, err
	}
	if waits {
		// What was in flight can be read afterwards, but it is not all of it.
		time.Sleep(15 * time.Second)
		// A reset is as good as an end.
		if n, _ := io.Copy(io.Discard, conn); n > 7<<20 {
			return 0, fmt.Errorf("%d bytes came", n)
		}
		return 0, nil
	}
	if err := conn.SetReadDeadline(start.Add(noisy * 10 * time.Second)); err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return time.Since(start), err
	}
	return time.Since(start), nil // closed or reset
}

// slowDownload takes longer than any time-out of the server, and is not cut because it moves.
func slowDownload(t *testing.T, addr string, a meta.Artifact) {
	start := time.Now()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close() //nolint:errcheck // a test
	if tcp, ok := conn.(*net.TCPConn); !ok || tcp.SetReadBuffer(64<<10) != nil {
		t.Error("the size of the socket's buffer cannot be set")
	}
	fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1999999\r\n\r\n", a.Path)
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 4<<10), nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close() //nolint:errcheck // a test
	n, err := io.Copy(io.Discard, slowReader{response.Body, start.Add(12 * time.Second)})
	if err != nil || n != 2_000_000 || time.Since(start) < 12*time.Second {
		t.Errorf("a slow download got %d bytes in %v: %v", n, time.Since(start), err)
	}
}

// slowReader reads less than 80 kB a second until a time.
type slowReader struct {
	from  io.Reader
	until time.Time
}

func (s slowReader) Read(p []byte) (int, error) {
	if time.Now().Before(s.until) {
		time.Sleep(50 * time.Millisecond)
		p = p[:min(len(p), 4_000)]
	}
	return s.from.Read(p)
}

func TestF18HugeHeaders(t *testing.T) {
	addr := serve(t, openStore(t, t.TempDir()))
	request, err := http.NewRequest(http.MethodGet, "http://"+addr+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Huge", strings.Repeat("x", 64<<10))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return // the connection was closed while we still sent
	}
	defer response.Body.Close() //nolint:errcheck // a test
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %d", response.StatusCode)
	}
}

func TestF18ConnectionsPerAddress(t *testing.T) {
	store := openStore(t, t.TempDir())
	a := put(t, store, files(map[string]string{"a": "1"}))
	addr := serveWith(t, server.NewHandler(store, server.Options{ConnectionsPerAddress: 3}))
	ask := func(conn net.Conn) bool {
		fmt.Fprintf(conn, "HEAD /%s HTTP/1.1\r\nHost: x\r\n\r\n", a.Path)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil && response.StatusCode == http.StatusOK
	}
	var held []net.Conn
	for i := range 5 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test
		if got, want := ask(conn), i < 3; got != want {
			t.Errorf("connection %d: served is %v", i+1, got)
		}
		held = append(held, conn)
	}
	if err := held[0].Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for served := false; !served; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		served = ask(conn)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("a closed connection still counts")
		}
	}
}
