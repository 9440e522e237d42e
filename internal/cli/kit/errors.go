// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// AccessError is a request to the cluster that failed.
type AccessError struct {
	Verb, Resource, Namespace string // namespace is empty for all
	Err                       error
}

// Error says what was asked for and what came back.
func (e *AccessError) Error() string {
	return fmt.Sprintf("%s %s: %v", gerunds[e.Verb], e.Resource, e.Err)
}

// Unwrap returns what came back.
func (e *AccessError) Unwrap() error { return e.Err }

// gerunds are the verbs of RBAC in sentences.
var gerunds = map[string]string{"get": "reading", "list": "listing", "watch": "watching", "patch": "changing", "create": "creating", "delete": "deleting"}

// NotFoundError is an object that does not exist.
type NotFoundError struct {
	Kind            Kind
	Name, Namespace string
	known           bool     // it is known what else there is
	near            []string // objects of the namespace, the nearest name first
	elsewhere       []string // namespaces with an object of that name
}

// Error names what could be meant instead.
func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("there is no %s %q in the namespace %q", e.Kind.Name, e.Name, e.Namespace)
	switch {
	case len(e.near) > 0:
		return text + "; there is: " + strings.Join(e.near, ", ")
	case len(e.elsewhere) > 0:
		return text + "; there is one in: " + strings.Join(e.elsewhere, ", ") + " (choose with -n)"
	case e.known:
		return text + ", which holds none at all; choose another with -n, or list all with: get " + e.Kind.Word + "s -A"
	}
	return text
}

// sayable is an error with a complete message, though a failed connection may have caused it: it is not about the cluster.
type sayable interface {
	error
	NotAboutCluster()
}

// Explain turns an error into one sentence that says what to do.
func (a *App) Explain(err error) string {
	var access *AccessError
	var refused *url.Error
	var complete sayable
	switch {
	case errors.As(err, &complete):
		return err.Error()
	case errors.Is(err, clientcmd.ErrEmptyConfig): // clientcmd.IsEmptyConfig does not see errors inside of others
		return "no cluster is chosen: " + withoutCluster(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	case IsAPIMissing(err) && errors.As(err, &access) && access.Resource == Rollouts.Resource:
		return fmt.Sprintf("BundleRollouts are not installed in this cluster: install them with %s install --with rollouts, or choose another cluster with --context", a.Name)
	case IsAPIMissing(err):
		return fmt.Sprintf("Satchel is not installed in this cluster: the API %s is missing; install it with "+
			"%s install, or choose another cluster with --context", v1alpha1.GroupVersion, a.Name)
	case apierrors.IsUnauthorized(err):
		return "the cluster does not accept your credentials: those of the kubeconfig are missing, wrong or expired; log in again, or choose others with --context or --user"
	case apierrors.IsForbidden(err) && errors.As(err, &access):
		return a.explainForbidden(access)
	case errors.As(err, &refused) && IsUnreachable(err):
		return fmt.Sprintf("the cluster at %s cannot be reached (%v): start it, or choose another with --context or --kubeconfig",
			serverOf(refused.URL), refused.Err)
	}
	return err.Error()
}

// withoutCluster says what to do where no kubeconfig names a cluster. A missing file of KUBECONFIG is no error for client-go.
func withoutCluster(variable string) string {
	var missing []string
	for _, file := range filepath.SplitList(variable) {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) { //nolint:gosec // the user names the file in an own variable
			missing = append(missing, file)
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("the file %s of KUBECONFIG does not exist: correct KUBECONFIG, or give --kubeconfig or --server", strings.Join(missing, ", "))
	}
	return "set KUBECONFIG, or give --kubeconfig or --server"
}

// explainForbidden names the permission that is missing.
func (a *App) explainForbidden(e *AccessError) string {
	where := "in all namespaces"
	if e.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", e.Namespace)
	}
	return fmt.Sprintf("you may not %s %s.%s %s: ask an administrator for a Role with that verb, or choose another user or namespace "+
		"(the cluster says: %v)", e.Verb, e.Resource, v1alpha1.GroupVersion.Group, where, e.Err)
}

// IsAPIMissing tells whether the API server does not know the kinds at all: its answer names no object then.
func IsAPIMissing(err error) bool {
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

// IsUnreachable tells whether no connection came about.
func IsUnreachable(err error) bool {
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
