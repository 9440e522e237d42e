// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
)

// leaderServer serves artifacts, or receives uploads, while this process is the leader. A standby
// process listens, too, so that it is ready, but it serves nothing: its storage may be
// outdated or empty.
type leaderServer struct {
	what      string // a gerund: "serving artifacts"
	flag      string // the flag of the address
	standby   http.HandlerFunc
	http      *http.Server
	tls       *tls.Config // nil for plain HTTP
	elected   <-chan struct{}
	listening atomic.Bool
}

// add adds the artifact server to a manager.
func (o ServerOptions) add(mgr ctrl.Manager, handler *server.Handler) error {
	s := &leaderServer{what: "serving artifacts", flag: "--storage-addr", standby: refuseDownload, http: handler.Server(o.Addr), elected: mgr.Elected()}
	s.http.Handler = s.onlyLeading(s.http.Handler)
	s.http.ErrorLog = log.New(withoutHandshakes{os.Stderr}, "", log.LstdFlags)
	if o.TLSCert != "" {
		// It reads the files again when they change, as they do long before a certificate ends.
		watcher, err := certwatcher.New(o.TLSCert, o.TLSKey)
		if err != nil {
			return fmt.Errorf("reading the certificate of the artifact server: %w: check --storage-tls-cert and --storage-tls-key", err)
		}
		if err := mgr.Add(watcher); err != nil {
			return err
		}
		s.tls = &tls.Config{GetCertificate: watcher.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	return errors.Join(mgr.AddReadyzCheck("artifacts", s.ready), mgr.Add(s))
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*leaderServer) NeedLeaderElection() bool { return false }

// ready implements healthz.Checker.
func (s *leaderServer) ready(*http.Request) error {
	if !s.listening.Load() {
		return fmt.Errorf("%s: it does not listen yet", s.what)
	}
	return nil
}

// Start implements manager.Runnable.
func (s *leaderServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.http.Addr)
	if err != nil {
		return fmt.Errorf("%s: %w: check %s", s.what, err, s.flag)
	}
	if s.tls != nil {
		listener = tls.NewListener(listener, s.tls)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(listener) }()
	s.listening.Store(true)
	defer s.listening.Store(false)
	select {
	case err := <-ended:
		return fmt.Errorf("%s: %w", s.what, err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if s.http.Shutdown(grace) != nil {
		_ = s.http.Close() // running requests are cut: clients retry downloads and uploads
	}
	return nil
}

// onlyLeading refuses requests while another process is the leader. The connection is
// closed, because behind a Service the next one may reach the leader.
func (s *leaderServer) onlyLeading(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.elected:
			serve.ServeHTTP(w, r)
		default:
			w.Header().Set("Connection", "close")
			s.standby(w, r)
		}
	})
}

// refuseDownload answers requests for artifacts in a standby process.
func refuseDownload(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set(artifact.StandbyHeader, "true")
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// refuseUpload answers uploads in a standby process.
func refuseUpload(w http.ResponseWriter, _ *http.Request) {
	upload.Answer(w, &upload.Error{Reason: upload.Standby, Message: "another process of the source controller is the leader: upload to that one", RetryAfter: time.Second})
}

// withoutHandshakes drops the messages of net/http about failed TLS handshakes: every
// client that reaches the port could fill the log.
type withoutHandshakes struct{ to io.Writer }

// Write implements io.Writer.
func (w withoutHandshakes) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) {
		return len(line), nil
	}
	return w.to.Write(line)
}
