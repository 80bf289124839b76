# The benchmark's dumbbell in ns-2: bulk flows, queue of one BDP, access links ten times as fast.
# Arguments: Mbit/s, RTT in ms, seconds, flows, then the kinds that take turns.
lassign $argv mbps rtt seconds flows
set kinds [lrange $argv 4 end]
set packets [expr int($mbps * 1e6 * $rtt / 1000 / 8 / 1500)]
# The Ack Vectors of its CCID 2 have to fit in one option, or it ends: a slow start that overshoots
# by a whole queue is too much for them.
Agent/DCCP set opt_size_ 4096
Agent/DCCP set sb_size_ 100000
Agent/DCCP/TCPlike set initial_ssthresh_ [expr $packets / 2]
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${mbps}Mb [expr $rtt / 2.0]ms DropTail
$ns queue-limit $left $right $packets
$ns queue-limit $right $left $packets
set monitor [$ns monitor-queue $left $right ""]

proc access {host router} {
    global ns mbps
    $ns duplex-link $host $router [expr 10 * $mbps]Mb 0ms DropTail
    $ns queue-limit $host $router 1000000
    $ns queue-limit $router $host 1000000
}

for {set i 0} {$i < $flows} {incr i} {
    set a [$ns node]
    set b [$ns node]
    access $a $left
    access $b $right
    set kind [lindex $kinds [expr $i % [llength $kinds]]]
    if {$kind == "ccid2"} {
        set from [new Agent/DCCP/TCPlike]
        set to [new Agent/DCCP/TCPlike]
        $ns at 0 "$to listen"
    } else {
        set from [new Agent/TCP/Linux]
        set to [new Agent/TCPSink/Sack1/DelAck]
        $to set ts_echo_rfc1323_ true
        $ns at 0 "$from select_ca $kind"
    }
    $from set packetSize_ 1460
    $from set window_ 1000000
    $ns attach-agent $a $from
    $ns attach-agent $b $to
    $ns connect $from $to
    set source [new Application/FTP]
    $source attach-agent $from
    $ns at [expr double($i) / $flows] "$source start"
}
$ns at $seconds {puts "delivered [$monitor set pdepartures_]"; exit 0}
$ns run
