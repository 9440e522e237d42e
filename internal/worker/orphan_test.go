// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"os"
	"time"
)

// controllerArgument makes the test binary a process with a pool that is always busy.
const controllerArgument = "satchel-test-controller"

// controllerMain runs jobs of three namespaces until it is killed, and prints the process
// ids of its workers.
func controllerMain() {
	p, err := New(testOptions())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := range 3 {
		go func() {
			namespace := fmt.Sprint(i)
			for {
				pid, err := p.Run(context.Background(), Request{Namespace: namespace, Kind: "pid"})
				fmt.Println(string(pid), err)
				_, _ = p.Run(context.Background(), Request{Namespace: namespace, Kind: "spin", Data: []byte("50ms")})
			}
		}()
	}
	time.Sleep(time.Hour)
}
