//! Network links as small composable elements: rate, delay, queues, loss.
