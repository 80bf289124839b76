# Procedures that scenarios are written with. The trace has the descriptor 3: code of ns-2 prints
# to standard output.
set ns [new Simulator]
set out [open /dev/fd/3 w]
fconfigure $out -buffering full -buffersize 1000000
# Its nonces come from the time of day: without ECN they do no harm.
Agent/DCCP set use_ecn_local_ 0
Agent/DCCP set use_ecn_remote_ 0

# One direction of a link. `settings` are variables of the queue and their values.
proc wire {from to rate delay kind limit settings} {
    global ns node
    $ns simplex-link $node($from) $node($to) $rate $delay $kind
    $ns queue-limit $node($from) $node($to) $limit
    foreach {name value} $settings {
        [[$ns link $node($from) $node($to)] queue] set $name $value
    }
    tap $from $to Drop
}

# Writes one kind of event of a link to the trace: Enque, Recv or Drop.
proc tap {from to kind} {
    global ns node out
    set link [$ns link $node($from) $node($to)]
    set trace [$ns create-trace $kind $out $node($from) $node($to)]
    switch $kind {
        Enque { $link add-to-head $trace }
        Recv { splice $trace [$link set ttl_] }
        Drop {
            splice $trace [$link set drophead_]
            [$link queue] drop-target [$link set drophead_]
        }
    }
}

# Puts a trace behind an element.
proc splice {trace element} {
    $trace target [$element target]
    $element target $trace
}

# The sender sends to its router what is recorded, and gets from there what is recorded.
proc tap_host {host router} {
    tap $host $router Enque
    tap $router $host Recv
}

# Two agents of a flow, and its application. Settings are lists of variables and values.
proc flow {i sender receiver from settings to to_settings source source_settings} {
    global ns node agent source_of
    set agent($i) [new $from]
    set peer [new $to]
    foreach {name value} $settings { $agent($i) set $name $value }
    foreach {name value} $to_settings { $peer set $name $value }
    $agent($i) set fid_ $i
    $peer set fid_ $i
    $ns attach-agent $node($sender) $agent($i)
    $ns attach-agent $node($receiver) $peer
    $ns connect $agent($i) $peer
    if {[string match Agent/DCCP/* $to]} { $ns at 0 "$peer listen" }
    set source_of($i) [new $source]
    foreach {name value} $source_settings { $source_of($i) set $name $value }
    $source_of($i) attach-agent $agent($i)
}

# What a sample says of a sender: window, cuts, timeouts, retransmissions, round-trip time.
proc look_tcp {i} {
    global agent
    set a $agent($i)
    return "[$a set cwnd_] [$a set ncwndcuts_] [$a set nrexmit_] [$a set nrexmitpack_] -"
}
proc look_ccid2 {i} {
    global agent cuts timeouts
    set a $agent($i)
    return "[$a set cwnd_] $cuts($i) $timeouts($i) 0 [$a set srtt_]"
}
proc look_ccid3 {i} {
    global agent
    return "- 0 0 0 [$agent($i) set s_rtt_]"
}
proc look_udp {i} { return "- 0 0 0 -" }

# Polls the window of a CCID 2 every `step` seconds. A window that has fallen to its threshold was
# halved; then it is set to the part `keep` of what it was.
proc poll_ccid2 {i step keep} {
    global ns agent window threshold cuts timeouts
    set w [$agent($i) set cwnd_]
    set t [$agent($i) set ssthresh_]
    if {[info exists window($i)] && ($w < $window($i) || $t != $threshold($i))} {
        incr cuts($i)
        if {$w < $t || $w == 1} {
            incr timeouts($i)
        } elseif {$keep != 0.5} {
            set w [expr {max(1, int($window($i) * $keep))}]
            set t $w
            $agent($i) set cwnd_ $w
            $agent($i) set ssthresh_ $w
        }
    }
    set window($i) $w
    set threshold($i) $t
    $ns at [expr {[$ns now] + $step}] "poll_ccid2 $i $step $keep"
}

# Watches the queue of a link between routers.
proc watch {k from to} {
    global ns node monitor
    set monitor($k) [$ns monitor-queue $node($from) $node($to) ""]
}

# One line a watched queue: packets and bytes that came, left, were dropped, and wait.
proc look_queues {} {
    global ns out monitor
    foreach k {0 1} {
        set line "L $k [format %.9f [$ns now]]"
        foreach name {parrivals_ barrivals_ pdepartures_ bdepartures_ pdrops_ bdrops_ pkts_ size_} {
            append line " [format %.0f [$monitor($k) set $name]]"
        }
        puts $out $line
    }
}
proc look_at_queues {k step end} {
    global ns
    look_queues
    set next [expr {($k + 1) * $step}]
    if {$next < $end} { $ns at $next "look_at_queues [expr {$k + 1}] $step $end" }
}

# One line a flow at the end of each interval of the series.
proc sample_flows {k} {
    global out looks
    for {set i 0} {$i < [llength $looks]} {incr i} {
        puts $out "F $i $k [[lindex $looks $i] $i]"
    }
}
proc sample {k every end} {
    global ns
    sample_flows [expr {$k - 1}]
    set next [expr {($k + 1) * $every}]
    if {$next < $end} { $ns at $next "sample [expr {$k + 1}] $every $end" }
}
proc finish {k} {
    global out
    look_queues
    sample_flows $k
    puts $out E
    close $out
    exit 0
}
