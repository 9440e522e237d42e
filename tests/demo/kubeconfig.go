// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is how long a controller's token is valid: a demo may be left running for a day.
const tokenSeconds = 24 * 60 * 60

// accountKubeconfig writes a kubeconfig by which a process acts as a ServiceAccount, with its permissions and no
// others.
func accountKubeconfig(ctx context.Context, admin *rest.Config, namespace, account, file string) error {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("preparing a client: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("requesting a token of the ServiceAccount %s/%s: %w", namespace, account, err)
	}
	config := rest.CopyConfig(admin)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("reading the certificate of the API server's authority: %w", err)
	}
	const name = "demo"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData,
		InsecureSkipTLSVerify: config.Insecure, TLSServerName: config.ServerName,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	kubeconfig.CurrentContext = name
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		return fmt.Errorf("writing the kubeconfig of the ServiceAccount %s: %w", account, err)
	}
	return nil
}
