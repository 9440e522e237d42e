// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Registry writes to registries.
type Registry struct {
	// Client decides what is reached.
	Client *http.Client
	// Keychain has the logins.
	Keychain authn.Keychain
	// UserAgent is what the registry's log shows.
	UserAgent string
	// Progress, if not nil, is called with the bytes that were sent and those that are to be sent.
	Progress func(sent, total int64)
	// Pause is the first pause before a request is tried again; 0 stands for one second.
	Pause time.Duration
}

// tries bounds the attempts of a request with a temporary failure; the pauses between them grow threefold.
const tries = 4

func (r Registry) options(ctx context.Context) []remote.Option {
	pause := r.Pause
	if pause == 0 {
		pause = time.Second
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(r.Client.Transport), remote.WithAuthFromKeychain(r.Keychain), remote.WithUserAgent(r.UserAgent),
		remote.WithRetryBackoff(remote.Backoff{Duration: pause, Factor: 3, Jitter: 0.1, Steps: tries}),
		remote.WithRetryPredicate(mayPass),
	}
}

// mayPass tells whether a failure of a connection may be temporary. An unknown host and an untrusted certificate are not.
func mayPass(err error) bool {
	var answer *transport.Error
	if errors.As(err, &answer) {
		return answer.Temporary()
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		fetch.ReasonOf(err) == fetch.Timeout && !errors.Is(err, context.DeadlineExceeded)
}

// Push pushes an image to a registry, under a tag. Layers that the registry has are not sent again.
func (r Registry) Push(ctx context.Context, to name.Tag, image v1.Image) error {
	options := r.options(ctx)
	if r.Progress != nil {
		updates, ended := make(chan v1.Update, 16), make(chan struct{})
		go func() {
			defer close(ended)
			for u := range updates {
				r.Progress(u.Complete, u.Total)
			}
		}()
		options = append(options, remote.WithProgress(updates))
		defer func() { <-ended }() // the channel is closed by remote.Write
	}
	return r.explain(ctx, to, "pushing", remote.Write(to, image, options...))
}

// explain describes the answer of the registry, and what to do.
func (r Registry) explain(ctx context.Context, ref name.Reference, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var answer *transport.Error
	if errors.As(err, &answer) {
		answer = r.inWords(ctx, ref, answer)
		return &fetch.Error{Reason: reasonOf(answer.StatusCode), Err: fmt.Errorf("%s %s: %s; %s", doing, ref.Name(), wordsOf(answer), r.remedy(ref, answer.StatusCode))}
	}
	var known *fetch.Error
	if errors.As(err, &known) {
		return fetch.Describe(known, "%s %s", doing, ref.Name())
	}
	var network *url.Error
	if errors.As(err, &network) {
		err = fetch.NetworkError(err)
	}
	return fetch.Describe(err, "%s %s", doing, ref.Name())
}

// inWords repeats a failed HEAD request, which has no message, with GET.
func (r Registry) inWords(ctx context.Context, ref name.Reference, answer *transport.Error) *transport.Error {
	if len(answer.Errors) > 0 || answer.Request == nil || answer.Request.Method != http.MethodHead {
		return answer
	}
	_, err := remote.Get(ref, append(r.options(ctx), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))...)
	var again *transport.Error
	if errors.As(err, &again) && again.StatusCode == answer.StatusCode {
		return again
	}
	return answer
}

func reasonOf(code int) fetch.Reason { return fetch.ReasonOf(fetch.StatusError(code, nil, "")) }

// wordsOf is the answer of a registry: the code and its messages.
func wordsOf(answer *transport.Error) string {
	text := fmt.Sprintf("the registry answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	var said []string
	for _, d := range answer.Errors {
		one := string(d.Code)
		if d.Message != "" {
			one += " " + fetch.Quote(d.Message)
		}
		if !slices.Contains(said, one) && len(said) < mostSaid {
			said = append(said, one)
		}
	}
	for i, one := range said {
		text += []string{": ", ", "}[min(i, 1)] + one
	}
	return text
}

// mostSaid bounds how much of a registry's answer is shown.
const mostSaid = 3

// remedy says what to do about a status.
func (r Registry) remedy(ref name.Reference, code int) string {
	host, repository := ref.Context().RegistryStr(), ref.Context().RepositoryStr()
	login := "log in with docker login " + host + " (or podman, or crane auth login)"
	if known, err := authn.Resolve(context.Background(), r.Keychain, ref.Context()); err == nil && known != authn.Anonymous {
		login = "check the login for " + host + " in your Docker configuration"
	}
	switch {
	case code == http.StatusUnauthorized:
		return login + ", and that it may write to " + repository
	case code == http.StatusForbidden:
		return login + ": it may not do that in " + repository
	case code == http.StatusNotFound:
		return "check the name: the registry knows no " + repository + " or hides it; some registries want repositories to be created first"
	case code == http.StatusRequestEntityTooLarge:
		return "make the bundle smaller, or raise the limit of the registry or of the proxy before it"
	case code == http.StatusTooManyRequests:
		return "wait, and try again: the registry asks for fewer requests"
	case code >= http.StatusInternalServerError:
		return "the registry failed: try again later, and look into its log if it stays so"
	}
	return "check that this is a registry of OCI images, and that it permits this"
}
