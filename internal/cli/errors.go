// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// accessError is a request to the cluster that failed.
type accessError struct {
	verb, resource, namespace string // namespace is empty for all
	err                       error
}

// Error says what was asked for and what came back.
func (e *accessError) Error() string {
	return fmt.Sprintf("%s %s: %v", gerunds[e.verb], e.resource, e.err)
}

// Unwrap returns what came back.
func (e *accessError) Unwrap() error { return e.err }

// gerunds are the verbs of RBAC in sentences.
var gerunds = map[string]string{"get": "reading", "list": "listing", "watch": "watching", "patch": "changing", "create": "creating", "delete": "deleting"}

// notFoundError is an object that does not exist.
type notFoundError struct {
	kind            kind
	name, namespace string
	known           bool     // it is known what else there is
	near            []string // objects of the namespace, the nearest name first
	elsewhere       []string // namespaces with an object of that name
}

// Error names what could be meant instead.
func (e *notFoundError) Error() string {
	text := fmt.Sprintf("there is no %s %q in the namespace %q", e.kind.name, e.name, e.namespace)
	switch {
	case len(e.near) > 0:
		return text + "; there is: " + strings.Join(e.near, ", ")
	case len(e.elsewhere) > 0:
		return text + "; there is one in: " + strings.Join(e.elsewhere, ", ") + " (choose with -n)"
	case e.known:
		return text + ", which holds none at all; choose another with -n, or list all with: get " + e.kind.word + "s -A"
	}
	return text
}

// downloadError is an image that could not be fetched.
type downloadError struct {
	what string // as the user wrote it
	ref  name.Reference
	err  error
}

// Error says how the name was read, and why the image cannot be fetched.
func (e *downloadError) Error() string {
	text := fmt.Sprintf("the image %s cannot be fetched: %s", e.ref.Name(), e.cause())
	if !looksLikeImage(e.what) {
		text = fmt.Sprintf("there is no folder %s, and %s", e.what, text)
	}
	return text
}

// cause is the error without what the message says already.
func (e *downloadError) cause() string {
	var asked *url.Error
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(e.err, &asked) && errors.As(e.err, &noTLS):
		return asked.Err.Error() + "; add --insecure if that is a registry without TLS"
	case errors.As(e.err, &asked) && errors.Is(e.err, syscall.ECONNREFUSED):
		return asked.Err.Error() // which says what to do
	case errors.As(e.err, &asked) && isUnreachable(e.err):
		return asked.Err.Error() + "; check the name of the registry and your network"
	}
	text := strings.TrimPrefix(e.err.Error(), "image "+e.ref.String()+": ")
	return strings.TrimPrefix(text, fmt.Sprintf("image %q: ", e.ref.String()))
}

// Unwrap returns the cause.
func (e *downloadError) Unwrap() error { return e.err }

// explain turns an error into one sentence that says what to do.
func (a *app) explain(err error) string {
	var access *accessError
	var refused *url.Error
	var download *downloadError
	switch {
	case errors.As(err, &download):
		return err.Error()
	case errors.Is(err, clientcmd.ErrEmptyConfig): // clientcmd.IsEmptyConfig does not see errors inside of others
		return "no cluster is chosen: set KUBECONFIG, or give --kubeconfig or --server"
	case isAPIMissing(err):
		return fmt.Sprintf("Satchel is not installed in this cluster: the API %s is missing; install it with "+
			"%s install, or choose another cluster with --context", v1alpha1.GroupVersion, a.name)
	case apierrors.IsUnauthorized(err):
		return "the cluster does not accept your credentials: those of the kubeconfig are missing, wrong or expired; log in again, or choose others with --context or --user"
	case apierrors.IsForbidden(err) && errors.As(err, &access):
		return a.explainForbidden(access)
	case errors.As(err, &refused) && isUnreachable(err):
		return fmt.Sprintf("the cluster at %s cannot be reached (%v): start it, or choose another with --context or --kubeconfig",
			serverOf(refused.URL), refused.Err)
	}
	return err.Error()
}

// explainForbidden names the permission that is missing.
func (a *app) explainForbidden(e *accessError) string {
	where := "in all namespaces"
	if e.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", e.namespace)
	}
	return fmt.Sprintf("you may not %s %s.%s %s: ask an administrator for a Role with that verb, or choose another user or namespace "+
		"(the cluster says: %v)", e.verb, e.resource, v1alpha1.GroupVersion.Group, where, e.err)
}

// isAPIMissing tells whether the API server does not know the kinds at all: its answer names no object then.
func isAPIMissing(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	if details == nil {
		return true
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// isUnreachable tells whether no connection came about.
func isUnreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network)
}

// serverOf returns scheme and host of a URL.
func serverOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	return parsed.Scheme + "://" + parsed.Host
}
